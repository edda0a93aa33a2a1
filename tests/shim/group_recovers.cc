// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
//
// A process group's session without a framework, over the fake client: ranks fall back together,
// repair the state of a lost session, attach again, and fail together.
#include <algorithm>
#include <tuple>

#include "tests/shim/group_rig.h"

using namespace gradplane;
using namespace gradplane::test;

namespace {

constexpr std::size_t kRoundElements = 65536 / sizeof(std::uint32_t);

/// Collectives that take 4, 2 and 3 rounds with three ranks.
std::vector<Step> steps(std::uint32_t count) {
  std::vector<Step> all;
  for (std::uint32_t i = 0; i < count; ++i) {
    all.push_back({.elements = 3 * kRoundElements + 7, .seed = 3 * i + 1});
    all.push_back({.operation = Operation::kBroadcast,
                   .elements = kRoundElements + 1,
                   .seed = 3 * i + 2,
                   .source = static_cast<int>(i % 3)});
    all.push_back({.operation = Operation::kAllGather, .elements = 15000, .seed = 3 * i + 3});
  }
  return all;
}

std::uint64_t fallen_back() {
  std::uint64_t sum = 0;
  for (const auto& count : shim::counters().fallen_back_ops) sum += count;
  return sum;
}

}  // namespace

TEST_CASE("a session that is lost at any place leaves every rank with the right results") {
  // Sessions are lost in the first round, inside each collective and at its end. No rank, some
  // ranks, or all but one have the result.
  for (const auto& [round, results] : std::vector<std::pair<int, int>>{
           {0, 0}, {0, 1}, {2, 2}, {3, 1}, {4, 2}, {5, 0}, {6, 1}, {7, 2}, {20, 1}}) {
    CAPTURE(round, results);
    RankGroup group({.script = "lose=" + std::to_string(round) + ":" + std::to_string(results)});
    CHECK(all_are(run_all(group, steps(6)), ""));
    CHECK(shim::counters().fallbacks == 3);
    CHECK(shim::counters().failed_ops == 0);
    CHECK(shim::counters().recovered_rounds ==
          (results > 0 ? 3U - static_cast<unsigned>(results) : 0U));
    CHECK(fallen_back() > 0);
  }
}

TEST_CASE("what else than a sum is computed once more as what it is") {
  for (const Operation operation : {Operation::kAllReduce, Operation::kReduceScatter}) {
    for (const auto& [round, results] :
         std::vector<std::pair<int, int>>{{0, 0}, {1, 0}, {2, 1}, {5, 2}}) {
      CAPTURE(operation_name(operation), round, results);
      RankGroup group({.script = "lose=" + std::to_string(round) + ":" + std::to_string(results)});
      std::vector<Step> all;
      for (std::uint32_t i = 0; i < 8; ++i) {
        all.push_back({.operation = operation,
                       .elements = 12000,
                       .seed = i,
                       .reduction = kReductions[1 + i % 3],
                       .reuses_memory = operation == Operation::kReduceScatter});
      }
      CHECK(all_are(run_all(group, all), ""));
      CHECK(shim::counters().fallbacks == 3);
      CHECK(fallen_back() > 0);
    }
  }
}

TEST_CASE("shards of a sum that some ranks have and others lack are summed again") {
  // A shard of 12000 elements takes three rounds.
  for (const auto& [round, results] :
       std::vector<std::pair<int, int>>{{0, 0}, {0, 1}, {1, 2}, {2, 1}, {4, 2}, {8, 1}}) {
    CAPTURE(round, results);
    RankGroup group({.script = "lose=" + std::to_string(round) + ":" + std::to_string(results)});
    std::vector<Step> sums;
    for (std::uint32_t i = 0; i < 8; ++i) {
      sums.push_back({.operation = Operation::kReduceScatter,
                      .elements = 12000,
                      .seed = i,
                      .reuses_memory = true});
    }
    CHECK(all_are(run_all(group, sums), ""));
    CHECK(shim::counters().fallbacks == 3);
    CHECK(shim::counters().failed_ops == 0);
  }
}

TEST_CASE("a rank gets what the others have completed without it") {
  for (const auto& [round, lead] : std::vector<std::pair<int, int>>{{1, 1}, {2, 3}, {0, 8}}) {
    CAPTURE(round, lead);
    RankGroup group({.script = "absent=" + std::to_string(round) + ":" + std::to_string(lead)});
    std::vector<Step> sums;
    for (std::uint32_t i = 0; i < 20; ++i) sums.push_back({.elements = 64, .seed = i});
    std::vector<std::vector<std::uint32_t>> values(3);
    std::vector<std::shared_ptr<Seen>> seen;
    for (int rank = 0; rank < 3; ++rank) {
      auto& own = values[static_cast<std::size_t>(rank)];
      own.assign(64 * 20, static_cast<std::uint32_t>(rank) + 1);
      for (std::size_t i = 0; i < 20; ++i) {
        shim::Collective c;
        c.data = reinterpret_cast<std::byte*>(own.data() + 64 * i);
        c.bytes = 64 * sizeof(std::uint32_t);
        c.type = ElementType::kInt32;
        seen.push_back(std::make_shared<Seen>());
        group.session(rank).enqueue(seen.back(), c, std::make_shared<shim::HostMemory<int>>(0));
      }
    }
    for (const auto& one : seen) CHECK(one->result() == "");
    CHECK(values[0] == values[1]);
    CHECK(values[0] == values[2]);
    const auto without_a_rank = std::count(values[0].begin(), values[0].end(), 3U);
    CHECK(without_a_rank == 64 * lead);
    CHECK(shim::counters().recovered_rounds == static_cast<unsigned>(lead));
  }
}

TEST_CASE("one rank that its daemon refuses makes all go through the framework") {
  RankGroup group({.script = "refuse=1"});
  CHECK(all_are(run_all(group, steps(2)), ""));
  CHECK(shim::counters().fallbacks == 3);
  CHECK(shim::counters().carried_rounds == 0);
  CHECK(group.network().collectives() == 6);
}

TEST_CASE("where gradplane is required, one rank without it fails the collectives of all") {
  RankGroup group({.script = "refuse=1", .require = true});
  for (const std::string& result : run_all(group, steps(1))) {
    CHECK(result.find("rank 1 reports: the fake daemon refuses this rank") != std::string::npos);
    CHECK(result.find("is forbidden") != std::string::npos);
  }
  CHECK(group.network().collectives() == 0);
}

TEST_CASE("a daemon that names a round that nobody submitted is left by all") {
  RankGroup group({.script = "broken-garbage=5"});
  CHECK(all_are(run_all(group, steps(3)), ""));
  CHECK(shim::counters().fallbacks == 3);
}

TEST_CASE("ranks come back when their daemon takes jobs again") {
  RankGroup group({.ranks = 2, .script = "lose=1:0"});
  const std::vector<Step> one = {{}};
  CHECK(all_are(run_all(group, {{}, {}, {}}), ""));
  CHECK(shim::counters().fallbacks == 2);
  FakeDaemon::set("GRADPLANE_TEST_FAKE", "");
  group.daemon().take_jobs();
  const std::uint64_t carried = shim::counters().carried_rounds;
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (shim::counters().carried_rounds == carried && std::chrono::steady_clock::now() < until) {
    REQUIRE(all_are(run_all(group, one), ""));
  }
  CHECK(shim::counters().carried_rounds > carried);
  CHECK(shim::counters().fallbacks == 2);
}

TEST_CASE("an operation that takes longer than the group's timeout fails on every rank") {
  RankGroup group({.ranks = 2, .script = "stall=2", .timeout = std::chrono::milliseconds(500)});
  const auto results = run_all(group, {{}, {}, {}, {}});
  for (std::size_t i = 0; i < results.size(); ++i) {
    CAPTURE(i, results[i]);
    if (i < 4) CHECK(results[i] == "");
    if (i >= 4) CHECK(results[i] != "");
  }
  const bool says_why = std::any_of(results.begin(), results.end(), [](const std::string& r) {
    return r == "Timed out waiting 500ms for all_reduce to complete over gradplane";
  });
  CHECK(says_why);
}

TEST_CASE("a rank that dies fails the others, and keeps none of them waiting") {
  RankGroup group({.script = "stall=3"});
  std::vector<std::unique_ptr<Run>> runs;
  for (std::uint32_t i = 0; i < 5; ++i) {
    for (int rank = 0; rank < 3; ++rank) {
      runs.push_back(std::make_unique<Run>(group, rank, Step{.seed = i}));
    }
  }
  for (std::size_t i = 0; i < 9; ++i) CHECK(runs[i]->result() == "");
  group.network().lose(2);
  group.daemon().die();
  for (std::size_t i = 9; i < runs.size(); ++i) {
    CHECK(runs[i]->result() == "the connection to rank 2 was closed");
  }
}

TEST_CASE("ranks of which one talks nonsense fail together") {
  RankGroup group({.ranks = 2});
  group.network().garble(1);
  for (const std::string& result : run_all(group, {{}})) {
    const bool lost_step =
        result.find("the ranks of the group have lost step") != std::string::npos;
    CHECK((lost_step || result == "the connection to rank 0 was closed" ||
           result == "the connection to rank 1 was closed"));
  }
}

TEST_CASE("a result that comes after a rank has left enters the recovery") {
  RankGroup group({.script = "late=4"});
  CHECK(all_are(run_all(group, steps(2)), ""));
  CHECK(shim::counters().fallbacks == 3);
  CHECK(shim::counters().failed_ops == 0);
}

TEST_CASE("a group that has begun nothing ends at once") {
  RankGroup group({});
  group.end();
  CHECK(shim::counters().fallbacks == 0);
}
