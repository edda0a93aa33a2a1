// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Updates that go once to a group of all their receivers, with whole engines in virtual time. Each
// receiver gets every block, whoever hears the group. No other node gets a block, and updates leave
// their sender only once if the network copies them.
#include <functional>

#include "tests/property/exchange_scenarios.h"
#include "tests/property/seeds.h"
#include "tests/sim/dice.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::sim;
using gradplane::testing::Seeds;

namespace {

constexpr std::uint16_t kMembers = 6;
constexpr std::size_t kReceivers = 3;
constexpr std::size_t kSelections = 2;
constexpr std::uint32_t kBlocks = 24;
/// Rounds of a selection that begin before its first trial is answered. Their blocks go to each
/// receiver alone.
constexpr std::uint32_t kUntilHeard = 4;

/// `rounds` exchanges with the selections in turn.
Scenario exchanges_of(std::uint32_t rounds, std::size_t receivers = kReceivers) {
  Scenario s;
  s.plan = ring_plan(kMembers, kSelections, receivers);
  s.compute_max = {};
  s.multicast = true;
  for (std::uint32_t r = 0; r < rounds; ++r)
    s.rounds.push_back(exchange(kBlocks, static_cast<std::uint16_t>(r % kSelections)));
  return s;
}

std::uint64_t drops(const Outcome& o, hop::Drop why) {
  return o.counters.drops[static_cast<std::size_t>(why)];
}

}  // namespace

TEST_CASE("where the network copies, an update leaves its sender once, for its receivers alone") {
  constexpr std::uint32_t kRounds = 60;
  for (const bool authenticate : {false, true}) {
    Scenario s = exchanges_of(kRounds);
    s.authenticate = authenticate;
    const Outcome o = run(s);
    REQUIRE(o.failure == "");
    const hop::Counters& all = o.counters;
    CHECK(all.blocks_to_groups <= kRounds * kMembers * kBlocks);
    CHECK(all.blocks_to_groups >=
          (kRounds - kSelections * kUntilHeard) * kMembers * std::uint64_t{kBlocks});
    // The others went to each receiver alone, before the first trials were answered.
    CHECK(all.blocks_sent - all.blocks_to_groups <=
          kSelections * kUntilHeard * kMembers * kReceivers * kBlocks + all.group_trials);
    CHECK(all.group_trials == kMembers * kSelections);
    CHECK(all.blocks_retransmitted == 0);
    CHECK(all.blocks_received == kRounds * kMembers * kReceivers * kBlocks);
    CHECK(drops(o, hop::Drop::kDuplicate) <= all.group_trials * kReceivers);
    CHECK(drops(o, hop::Drop::kNotPeer) == 0);
  }
}

TEST_CASE("an update with a single receiver goes to it alone") {
  const Outcome o = run(exchanges_of(20, 1));
  REQUIRE(o.failure == "");
  CHECK(o.counters.blocks_to_groups + o.counters.group_trials == 0);
  CHECK(o.counters.blocks_sent == 20 * kMembers * kBlocks);
}

TEST_CASE("that the network copies updates is never assumed") {
  Scenario s = exchanges_of(60);
  s.link.copies_for = [](std::uint16_t, Instant) { return false; };
  const Outcome o = run(s);
  REQUIRE(o.failure == "");
  CHECK(o.counters.blocks_to_groups == 0);
  CHECK(o.counters.group_trials >= kMembers * kSelections);
  CHECK(o.counters.group_trials < 4 * kMembers * kSelections);
  CHECK(o.counters.blocks_retransmitted == 0);
}

TEST_CASE("a receiver that does not hear the groups gets updates alone, and holds nobody") {
  constexpr std::uint32_t kRounds = 60;
  Scenario s = exchanges_of(kRounds);
  s.link.copies_for = [](std::uint16_t to, Instant) { return to != 2; };
  const Outcome o = run(s);
  REQUIRE(o.failure == "");
  const std::uint64_t alone = o.counters.blocks_sent - o.counters.blocks_to_groups;
  CHECK(o.counters.blocks_to_groups > (kRounds - kSelections * kUntilHeard) * kMembers * kBlocks);
  CHECK(alone >= kRounds * kReceivers * kBlocks);  // from its three senders
  CHECK(alone <= kRounds * kReceivers * kBlocks +
                     kSelections * kUntilHeard * kMembers * kReceivers * kBlocks);
}

TEST_CASE("a switch that stops copying in the middle of an exchange stops nobody") {
  for (const std::int64_t ms : {3, 11}) {
    const Instant from = Instant() + Duration::ms(ms);
    const Instant until = from + Duration::ms(50);
    for (const bool is_one : {false, true}) {  // the switch does not copy for one host, or for all
      Scenario s = exchanges_of(300);
      s.link.bits_per_second = 100'000'000;
      s.link.copies_for = [=](std::uint16_t to, Instant now) {
        return now < from || now >= until || (is_one && to != 3);
      };
      const Outcome o = run(s);
      CAPTURE(ms, is_one);
      REQUIRE(o.failure == "");
      REQUIRE(o.ended > until + Duration::ms(150));
      CHECK(o.counters.group_members_deaf >= 1);
      CHECK(o.counters.blocks_to_groups > 100 * kMembers * kBlocks);  // groups were used again
      // The number of blocks that groups did not hear depends on what is in flight, not on the
      // time.
      CHECK(o.counters.blocks_retransmitted < 600 * kMembers);
    }
  }
}

TEST_CASE("exact rounds over the same plan go to the groups of results") {
  Scenario s = exchanges_of(60);
  for (std::size_t r = 0; r < s.rounds.size(); r += 3)
    s.rounds[r] = {ElementType::kFloat32, kBlocks * kBlockElements};
  const Outcome o = run(s);
  REQUIRE(o.failure == "");
  // Results of 20 sums, and updates of 40 exchanges, go to groups.
  CHECK(o.counters.blocks_to_groups > (40 - kSelections * kUntilHeard) * kMembers * kBlocks);
  CHECK(o.counters.group_trials >= kMembers * (kSelections + 1));
}

TEST_CASE("updates by groups are exact under loss, repetition and reordering") {
  std::uint64_t to_groups = 0;
  Seeds::of_simulations(10).each("update_groups", [&](std::uint64_t seed) {
    Dice dice(seed ^ 0x9d0095);
    Scenario s = exchanges_of(80, 2 + dice.below(4));
    s.seed = seed;
    s.authenticate = dice.coin();
    s.in_flight = 1 + dice.below(4);
    s.compute_max = Duration::ms(static_cast<std::int64_t>(dice.below(3)));
    s.link.loss = 0.05;
    s.link.duplication = 0.05;
    s.link.jitter = Duration::us(400);
    s.link.replays = dice.maybe(0.05);
    add_groups(s);
    const Outcome o = run(s);
    CHECK(o.failure == "");
    to_groups += o.counters.blocks_to_groups;
  });
  CHECK(to_groups > 0);
}

TEST_CASE("updates by groups lack no more than the bounds of their tensors allow") {
  Scenario s = exchanges_of(0);
  s.link.loss = 0.05;
  s.link.bits_per_second = 100'000'000;
  s.round_bytes = 200 * kMinBlockBytes;
  s.tolerance.buckets = {bucket_of(200, 0.2F)};
  s.tolerance.buckets[0].tensors = {{.name = "bias",
                                     .offset_elements = 0,
                                     .elements = 40 * kBlockElements,
                                     .bound = 0,
                                     .rule = {}},
                                    {.name = "weight",
                                     .offset_elements = 40 * kBlockElements,
                                     .elements = 160 * kBlockElements,
                                     .bound = 0.2F,
                                     .rule = {}}};
  s.rounds.assign(40, exchange(200, 0, 1));
  s.in_flight = 1;
  const Outcome o = run(s);
  REQUIRE(o.failure == "");
  CHECK(o.counters.blocks_to_groups > 30 * kMembers * 200);
  CHECK(o.counters.rounds_closed_early > 20);
  CHECK(o.counters.blocks_missing > 0);
  CHECK(o.counters.blocks_missing < std::uint64_t{160} / 5 * kReceivers * kMembers * 40);
}

TEST_CASE("the groups of a plan's updates are not those of the plan before") {
  Seeds::of_simulations(3).each("update_groups", [](std::uint64_t seed) {
    Scenario s = exchanges_of(200);
    s.seed = seed;
    s.link.loss = 0.02;
    s.link.jitter = Duration::us(400);
    for (std::size_t n = 1; n <= 3; ++n) {
      api::Plan plan = s.plan;
      plan.epoch = static_cast<std::uint32_t>(s.plan.epoch + n);
      s.flips.push_back(plan);
    }
    const Outcome o = run(s);
    CHECK(o.failure == "");
    CHECK(o.activations.size() == 3);
    CHECK(o.counters.blocks_to_groups > 0);
  });
}
