// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// When a round may close if its blocks come through a relay, with or without some hosts below the
// relay. gather_rules.cc has the rules for sources of one host.
#include <atomic>
#include <optional>
#include <vector>

#include "dataplane/aggregate/gather.h"
#include "tests/support/catch.h"
#include "tests/support/hosts.h"

using namespace gradplane;
using aggregate::Gather;

namespace {

constexpr std::uint32_t kBlocks = 100;
constexpr std::uint32_t kFirstLossy = 10;
constexpr std::uint32_t kAllowance = 9;
constexpr std::uint32_t kMaxTail = 3;  // the most blocks that a test leaves out at the end
constexpr Instant kStart = Instant::from_ns(1'000'000'000);
constexpr Duration kThreshold = Duration::ms(50);
constexpr std::size_t kRelay = 0;
constexpr std::size_t kLeaf = 1;
// Sets of hosts.
constexpr std::uint64_t kNobody = 0;
constexpr std::uint64_t kFirst = 1;
constexpr std::uint64_t kSecond = 2;

/// Source 0 is a relay with the hosts 0 and 1 (nodes 1 and 2). Source 1 is host 2 (node 3). Blocks
/// 0 to 9 are exact. Of the other blocks each host may miss nine.
struct Rig {
  explicit Rig(std::vector<aggregate::GatherSource> sources = {{.hosts = {{.node = 1, .host = 0},
                                                                          {.node = 2, .host = 1}},
                                                                .relays = true},
                                                               {.hosts = {{.node = 3, .host = 2}}}},
               const std::vector<bool>* is_exact = nullptr, Duration absent_after = {})
      : map(Geometry::of(ElementType::kFloat32, kBlocks * 128, 512, 1),
            {{0, 1280, 0}, {1280, 11520, 0.1F}}),
        bounds(2),
        gather((bounds[1] = 0.1F, std::move(sources)), map, bounds,
               {.strict_rounds = 0, .slack = Duration::ms(30), .absent_after = absent_after}, 1,
               is_exact) {}

  /// Lets blocks [from, to) of a source arrive. They lack the hosts of the set `without`.
  void arrive(std::size_t source, std::uint32_t from, std::uint32_t to,
              std::uint64_t without = kNobody, Duration at = {}) {
    for (std::uint32_t b = from; b < to; ++b) {
      const bool partial = without != kNobody;
      gather.on_block(source,
                      {.block = b,
                       .last = b + 1 == to && to >= kBlocks - kMaxTail,
                       .bounded = true,
                       .rtt = Duration::ms(2),
                       .missing = partial ? aggregate::HostSet{&without, 1} : aggregate::HostSet{}},
                      kStart + at);
    }
  }
  void learn(std::size_t sources = 2) {
    gather.open({0, kBlocks});
    for (std::size_t s = 0; s < sources; ++s) {
      arrive(s, 0, 1);
      arrive(s, 1, kBlocks, kNobody, kThreshold);
    }
    gather.close(CloseReason::kFull, kStart + kThreshold);
  }

  aggregate::TensorMap map;
  std::vector<std::atomic<float>> bounds;
  Gather gather;
};

void teach(Gather& after, const Gather& before) {
  Gather::Memory memory;
  before.add_to(memory);
  after.learn_from(memory);
}

}  // namespace

TEST_CASE("a relay may miss of each of its hosts what the bound allows") {
  Rig rig;
  rig.gather.open({0, kBlocks});
  rig.arrive(kLeaf, 0, kBlocks);
  rig.arrive(kRelay, 0, kFirstLossy);
  std::uint32_t next = kFirstLossy;
  for (const std::uint64_t host : {kFirst, kSecond}) {
    rig.arrive(kRelay, next, next + kAllowance, host);
    next += kAllowance;
  }
  rig.arrive(kRelay, next, kBlocks - 1);
  SECTION("each of them is in its bound") {
    rig.arrive(kRelay, kBlocks - 1, kBlocks);
  }
  SECTION("one of them is over it") {
    rig.arrive(kRelay, kBlocks - 1, kBlocks, kSecond);
  }
  CHECK(rig.gather.all_arrived());
  const bool is_over = rig.gather.missing_blocks() > 2 * kAllowance;
  CHECK(rig.gather.reason_when_arrived() ==
        (is_over ? CloseReason::kDeadline : CloseReason::kEarly));
}

TEST_CASE("a relay that has gone on without too much keeps a round from closing early") {
  Rig rig;
  rig.learn();
  rig.gather.open({0, kBlocks});
  rig.arrive(kLeaf, 0, kBlocks - 1);
  rig.arrive(kRelay, 0, kFirstLossy);
  rig.arrive(kRelay, kFirstLossy, kFirstLossy + kAllowance + 1, kFirst);
  rig.arrive(kRelay, kFirstLossy + kAllowance + 1, kBlocks);
  CHECK_FALSE(rig.gather.may_close(kStart + kThreshold));
  CHECK(rig.gather.may_close(kStart + kThreshold + Duration::ms(30)) == CloseReason::kDeadline);
}

TEST_CASE("a host of which less came through its relay than any other close allows was absent") {
  Rig rig;
  rig.gather.open({0, kBlocks});
  rig.arrive(kLeaf, 0, kBlocks);
  const auto came = [&](std::uint32_t blocks) {
    rig.arrive(kRelay, 0, blocks);
    rig.arrive(kRelay, blocks, kBlocks, kSecond);
    return rig.gather.with_absent(CloseReason::kDeadline);
  };
  SECTION("nothing came") {
    CHECK(came(0) == CloseReason::kAbsent);
  }
  SECTION("less than the floor came") {
    CHECK(came(kBlocks / 2 - 1) == CloseReason::kAbsent);
  }
  SECTION("the floor came") {
    CHECK(came(kBlocks / 2) == CloseReason::kDeadline);
  }
  SECTION("a critical block did not come") {
    rig.arrive(kRelay, 0, 1, kSecond);
    rig.arrive(kRelay, 1, kBlocks);
    CHECK(rig.gather.with_absent(CloseReason::kDeadline) == CloseReason::kAbsent);
  }
}

TEST_CASE("a node below another closes nothing before it has leave") {
  const std::vector<bool> is_exact(2);
  Rig rig({{.hosts = {{.node = 1, .host = 0}}}, {.hosts = {{.node = 3, .host = 2}}}}, &is_exact);
  rig.learn();
  rig.gather.open({0, kBlocks});
  rig.arrive(kRelay, 0, kBlocks - 1);
  rig.arrive(kLeaf, 0, kBlocks - 1);
  CHECK_FALSE(rig.gather.allows_below());
  CHECK_FALSE(rig.gather.may_close(kStart + Duration::seconds(100)));
  rig.gather.allow();
  CHECK(rig.gather.allows_below());
  CHECK(rig.gather.may_close(kStart + kThreshold) == CloseReason::kEarly);
}

TEST_CASE("a gathering of another plan knows of a node what the one before has learned") {
  Rig before;
  before.learn();
  // The relay has left, so each host is a source of its own.
  Rig after({{.hosts = {{.node = 3, .host = 0}}}, {.hosts = {{.node = 2, .host = 1}}}});
  teach(after.gather, before.gather);
  after.gather.open({0, kBlocks});
  after.arrive(0, 0, kBlocks - 1);
  after.arrive(1, 0, kBlocks - 1);
  CHECK_FALSE(after.gather.may_close(kStart + kThreshold - Duration::ms(1)));
  CHECK(after.gather.may_close(kStart + kThreshold) == CloseReason::kEarly);

  Rig with_new({{.hosts = {{.node = 3, .host = 0}}}, {.hosts = {{.node = 9, .host = 1}}}});
  teach(with_new.gather, before.gather);
  with_new.gather.open({0, kBlocks});
  with_new.arrive(0, 0, kBlocks - 1);
  with_new.arrive(1, 0, kBlocks - 1);
  CHECK(with_new.gather.may_close(kStart + kThreshold) == std::nullopt);
}

TEST_CASE("a relay keeps what does not enter only if all hosts below it have said that they do") {
  const auto is_absent_after = [](std::uint16_t leaf_below) {
    Rig before;
    before.learn();
    // Node 3 has become a relay, with another node below it.
    Rig after(
        {{.hosts = {{.node = 2, .host = 0}}},
         {.hosts = {{.node = leaf_below, .host = 1}, {.node = 3, .host = 2}}, .relays = true}},
        nullptr, Duration::seconds(1));
    teach(after.gather, before.gather);
    after.gather.open({0, kBlocks});
    after.arrive(0, 0, kBlocks);
    return after.gather.may_close(kStart + Duration::seconds(100)) == CloseReason::kAbsent;
  };
  CHECK(is_absent_after(1));
  CHECK_FALSE(is_absent_after(9));  // node 9 has not said that it keeps blocks
}

TEST_CASE("what a plan has counted of a node is counted on") {
  Rig before;
  before.gather.open({0, kBlocks});
  before.arrive(kLeaf, 0, kBlocks - 3);
  before.arrive(kRelay, 0, kBlocks);
  before.gather.close(CloseReason::kDeadline, kStart);
  Rig after({{.hosts = {{.node = 9, .host = 0}}}, {.hosts = {{.node = 3, .host = 1}}}});
  after.gather.add_counts(before.gather);
  CHECK(after.gather.report(0).missing_blocks == 0);
  CHECK(after.gather.report(1).missing_blocks == 3);
  CHECK(after.gather.report(1).expected_blocks == kBlocks);
}

namespace {

constexpr Duration kPatience = Duration::ms(400);
constexpr Duration kWayUp = Duration::ms(3);  // 1.5 of the rig's round trips

/// Lets all blocks of the relay but the last ten arrive. They say that the relay gathers for
/// `patience`. The other source is complete.
void arrive_patiently(Rig& rig, Duration patience, bool last = false) {
  rig.gather.open({0, kBlocks});
  rig.arrive(kLeaf, 0, kBlocks);
  for (std::uint32_t b = 0; b < kBlocks - 10; ++b) {
    rig.gather.on_block(
        kRelay,
        {.block = b, .last = last, .bounded = true, .rtt = Duration::ms(2), .patience = patience},
        kStart);
  }
}

}  // namespace

TEST_CASE("a parent waits until a relay has gathered, and for the way up") {
  Rig rig;
  rig.learn();
  arrive_patiently(rig, kPatience);
  CHECK_FALSE(rig.gather.may_close(kStart + kPatience + kWayUp - Duration::ns(1)));
  CHECK(rig.gather.may_close(kStart + kPatience + kWayUp) == CloseReason::kDeadline);
}

TEST_CASE("a relay that has sent everything is not waited for any longer than a leaf") {
  Rig rig;
  rig.learn();
  arrive_patiently(rig, kPatience, true);
  CHECK(rig.gather.may_close(kStart + kThreshold + Duration::ms(30)) == CloseReason::kDeadline);
}

TEST_CASE(
    "a node says how long it gathers: its own time, or that of a relay below and the way up") {
  Rig rig;
  rig.gather.open({0, kBlocks});
  CHECK(rig.gather.patience(kStart).until_close == Duration{});  // no threshold has been learned
  rig.gather.close(CloseReason::kFull, kStart);
  rig.learn();
  arrive_patiently(rig, Duration{});
  CHECK(rig.gather.patience(kStart).until_close == kThreshold + Duration::ms(30));
  CHECK(rig.gather.patience(kStart).transfer == kThreshold);
  rig.gather.close(CloseReason::kDeadline, kStart);
  arrive_patiently(rig, kPatience);
  CHECK(rig.gather.patience(kStart).until_close == kPatience + kWayUp);
  // The round is open for longer than that.
  CHECK(rig.gather.patience(kStart + kPatience * 2).until_close == kPatience * 2);
}
