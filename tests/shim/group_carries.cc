// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
//
// A process group's session without a framework, over the fake client: what it carries, in which
// order, and how the trainer learns of results. group_recovers.cc has its end and its recovery.
#include <pthread.h>

#include <atomic>
#include <thread>

#include "tests/shim/group_rig.h"

using namespace gradplane;
using namespace gradplane::test;

namespace {

constexpr std::size_t kRoundElements = 65536 / sizeof(std::uint32_t);

std::vector<Step> mixed_steps(std::uint32_t count) {
  std::vector<Step> steps;
  for (std::uint32_t i = 0; i < count; ++i) {
    steps.push_back({.elements = 3 * kRoundElements + 7, .seed = 3 * i + 1});
    steps.push_back({.operation = Operation::kBroadcast,
                     .elements = kRoundElements + i,
                     .seed = 3 * i + 2,
                     .source = static_cast<int>(i % 3)});
    steps.push_back({.operation = Operation::kAllGather, .elements = 9001, .seed = 3 * i + 3});
    steps.push_back({.operation = Operation::kReduceScatter, .elements = 12001, .seed = i});
  }
  return steps;
}

std::uint64_t carried(Operation operation) {
  return shim::counters().carried_ops[static_cast<std::size_t>(operation) - 1];
}

/// Memory of a device. It is copied in when the test says so. Then the result is copied out.
class Device final : public shim::Staging {
 public:
  bool is_in() override {
    asked = true;
    return has_come_in.load();
  }
  bool goes_out() const override { return true; }
  void bring_out() override {
    if (breaks) throw std::runtime_error("the device is gone");
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    brought_out_by = name;
    times_out += 1;
  }
  bool goes_out_at_once() const override { return copies_by_itself; }

  std::atomic<bool> asked{false};
  std::atomic<bool> has_come_in{false};
  std::atomic<int> times_out{0};
  bool breaks = false;
  bool copies_by_itself = false;
  std::string brought_out_by;  // the name of the thread that copied out; set when times_out is 1
};

shim::Collective sum_of(std::vector<std::uint32_t>& values) {
  shim::Collective c;
  c.data = reinterpret_cast<std::byte*>(values.data());
  c.bytes = values.size() * sizeof(std::uint32_t);
  c.type = ElementType::kInt32;
  return c;
}

}  // namespace

TEST_CASE("a group carries sums, copies and shards of both, all under way at once") {
  RankGroup group({});
  CHECK(all_are(run_all(group, mixed_steps(4)), ""));
  CHECK(carried(Operation::kAllReduce) == 12);
  CHECK(carried(Operation::kBroadcast) == 12);
  CHECK(carried(Operation::kAllGather) == 12);
  CHECK(carried(Operation::kReduceScatter) == 12);
  CHECK(shim::counters().fallbacks == 0);
  CHECK(shim::counters().failed_ops == 0);
  CHECK(group.network().collectives() == 0);
}

TEST_CASE("a group carries the largest, the smallest and the product, whole and in shards") {
  RankGroup group({});
  std::vector<Step> steps;
  for (const Reduction reduction : kReductions) {
    for (const Operation operation : {Operation::kAllReduce, Operation::kReduceScatter}) {
      steps.push_back({.operation = operation,
                       .elements = kRoundElements + 12001,
                       .seed = static_cast<std::uint32_t>(steps.size()),
                       .reduction = reduction});
    }
  }
  CHECK(all_are(run_all(group, steps), ""));
  CHECK(carried(Operation::kAllReduce) == 12);
  CHECK(carried(Operation::kReduceScatter) == 12);
  CHECK(shim::counters().fallbacks == 0);
}

TEST_CASE("a callback may wait for another collective") {
  RankGroup group({.ranks = 2});
  std::vector<std::unique_ptr<Run>> inner(2);
  std::vector<std::string> found(2);
  std::vector<std::unique_ptr<Run>> outer;
  for (int rank = 0; rank < 2; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    outer.push_back(std::make_unique<Run>(group, rank, Step{.seed = 1}, [&, rank, r] {
      inner[r] = std::make_unique<Run>(group, rank, Step{.seed = 2});
      found[r] = inner[r]->result();
    }));
  }
  for (const auto& run : outer) CHECK(run->result() == "");
  CHECK(all_are(found, ""));
}

TEST_CASE("what has not ended is what a barrier waits for") {
  RankGroup group({.ranks = 2});
  Run first(group, 0, {});
  const auto unfinished = group.session(0).unfinished();
  REQUIRE(unfinished.size() == 1);
  CHECK(unfinished[0].get() == &first.seen());
  Run second(group, 1, {});
  CHECK(first.result() == "");
  CHECK(second.result() == "");
}

TEST_CASE("a collective waits for its memory, and those that were called later wait behind it") {
  RankGroup group({.ranks = 2});
  std::vector<std::vector<std::uint32_t>> values(2);
  std::vector<std::shared_ptr<Seen>> seen;
  std::vector<std::shared_ptr<Device>> devices;
  std::vector<std::unique_ptr<Run>> later;
  for (int rank = 0; rank < 2; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    values[r].assign(100, 0);
    seen.push_back(std::make_shared<Seen>());
    devices.push_back(std::make_shared<Device>());
    group.session(rank).enqueue(seen[r], sum_of(values[r]), devices[r]);
    later.push_back(std::make_unique<Run>(group, rank, Step{}));
  }
  for (const auto& device : devices) {
    while (!device->asked) std::this_thread::yield();
  }
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK_FALSE(seen[rank]->is_over());
    CHECK_FALSE(later[rank]->seen().is_over());
    // A copy from a device ends some time after the call.
    values[rank].assign(100, static_cast<std::uint32_t>(rank) + 5);
    devices[rank]->has_come_in = true;
    group.session(static_cast<int>(rank)).wake();
  }
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(seen[rank]->result() == "");
    CHECK(later[rank]->result() == "");
    CHECK(values[rank] == std::vector<std::uint32_t>(100, 11));
    CHECK(devices[rank]->times_out == 1);
  }
}

TEST_CASE("a device that copies by itself is told to by the progress thread") {
  RankGroup group({.ranks = 2});
  std::vector<std::vector<std::uint32_t>> values(2, std::vector<std::uint32_t>(64, 1));
  for (const bool by_itself : {true, false}) {
    std::vector<std::shared_ptr<Seen>> seen;
    std::vector<std::shared_ptr<Device>> devices;
    for (int rank = 0; rank < 2; ++rank) {
      devices.push_back(std::make_shared<Device>());
      devices.back()->has_come_in = true;
      devices.back()->copies_by_itself = by_itself;
      seen.push_back(std::make_shared<Seen>());
      group.session(rank).enqueue(seen.back(), sum_of(values[static_cast<std::size_t>(rank)]),
                                  devices.back());
    }
    for (std::size_t rank = 0; rank < 2; ++rank) {
      CHECK(seen[rank]->result() == "");
      CHECK(devices[rank]->times_out == 1);
      CHECK(devices[rank]->brought_out_by == (by_itself ? "gp-progress" : "gp-complete"));
    }
  }
}

TEST_CASE("leftovers of what has ended are freed when the program says so") {
  RankGroup group({.ranks = 2});
  std::vector<std::vector<std::uint32_t>> values(2, std::vector<std::uint32_t>(64, 1));
  std::vector<std::shared_ptr<Seen>> seen;
  std::vector<std::weak_ptr<Device>> left;
  for (int rank = 0; rank < 2; ++rank) {
    const auto device = std::make_shared<Device>();
    device->has_come_in = device->copies_by_itself = true;
    seen.push_back(std::make_shared<Seen>());
    left.push_back(device);
    group.session(rank).enqueue(seen.back(), sum_of(values[static_cast<std::size_t>(rank)]),
                                device);
  }
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(seen[rank]->result() == "");
    group.session(static_cast<int>(rank)).free_leftovers(shim::GroupSession::Leaving::kAll);
    CHECK(left[rank].expired());
  }
}

TEST_CASE("results that cannot go out fail their operation, and no other") {
  RankGroup group({.ranks = 2});
  std::vector<std::vector<std::uint32_t>> values(2, std::vector<std::uint32_t>(64, 1));
  std::vector<std::shared_ptr<Seen>> seen;
  for (int rank = 0; rank < 2; ++rank) {
    const auto device = std::make_shared<Device>();
    device->has_come_in = true;
    device->breaks = rank == 1;
    seen.push_back(std::make_shared<Seen>());
    group.session(rank).enqueue(seen.back(), sum_of(values[static_cast<std::size_t>(rank)]),
                                device);
  }
  CHECK(seen[0]->result() == "");
  CHECK(seen[1]->result() == "the device is gone");
  CHECK(all_are(run_all(group, mixed_steps(1)), ""));
}

TEST_CASE("operations that were called before a group ends are carried to their end") {
  RankGroup group({.ranks = 2, .script = "slow=1"});
  std::vector<std::unique_ptr<Run>> runs;
  for (std::uint32_t i = 0; i < 40; ++i) {
    for (int rank = 0; rank < 2; ++rank) {
      runs.push_back(std::make_unique<Run>(group, rank, Step{.seed = i}));
    }
  }
  group.end();
  for (const auto& run : runs) CHECK(run->result() == "");
}
