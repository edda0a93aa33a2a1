// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Exchanges with whole engines in virtual time. A rank gets the mean over its own update and those
// of the ranks that select it, except for what bounds let it miss. No other rank gets an update.
#include <algorithm>
#include <array>

#include "tests/property/exchange_scenarios.h"
#include "tests/property/seeds.h"
#include "tests/sim/dice.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::sim;
using gradplane::testing::Seeds;

namespace {

Scenario lossless(std::uint16_t members, std::size_t receivers) {
  Scenario s;
  s.plan = ring_plan(members, 2, receivers);
  s.compute_max = {};
  return s;
}

constexpr std::size_t kRoundsWithPlans = 100;

/// Draws everything from the seed: selections, faults, and other options. `other_members`: the plan
/// changes, and ranks join and leave.
Scenario random_exchanges(std::uint64_t seed, bool other_members = false) {
  Scenario s = random_scenario(seed);
  Dice dice(seed ^ 0x5e1ec7);
  const auto members = static_cast<std::uint16_t>(2 + dice.below(7));
  const std::size_t selections = 1 + dice.below(kMaxSelections);
  s.plan = with_selections(sharded(members), selections,
                           [&](std::size_t, std::size_t, std::size_t) { return dice.coin(); });
  s.grants = false;
  if (other_members) {
    draw_plans(s, dice, 1 + dice.below(4),
               [&](std::size_t, std::size_t, std::size_t) { return dice.coin(); });
    s.flip_every = static_cast<std::uint32_t>(5 + dice.below(30));
    const std::vector<RoundPlan> rounds = s.rounds;
    while (s.rounds.size() < kRoundsWithPlans)
      s.rounds.insert(s.rounds.end(), rounds.begin(), rounds.end());
  }
  if (dice.coin()) add_groups(s);
  if (dice.coin()) add_routes(s);
  std::uint16_t step = 0;
  for (RoundPlan& round : s.rounds) {
    round.operation = Operation::kAllReduce;
    round.source = 0;
    if (dice.below(4) == 0) continue;
    round.operation = Operation::kExchange;
    round.reduction = Reduction::kSum;
    round.type = dice.coin() ? ElementType::kFloat32 : ElementType::kFloat64;
    round.elements = std::min<std::uint32_t>(round.elements, (64 << 10) / 8);
    round.source = static_cast<std::uint16_t>(step++ % selections);
  }
  return s;
}

}  // namespace

TEST_CASE("an exchange is the mean over a rank and those that it receives from") {
  for (const auto members : std::to_array<std::uint16_t>({2, 3, 5, 8})) {
    for (std::size_t receivers = 0; receivers < members; ++receivers) {
      Scenario s = lossless(members, receivers);
      s.rounds = {exchange(1), exchange(20, 1), exchange(7, 0), exchange(20, 1)};
      s.rounds[2].type = ElementType::kFloat64;
      INFO(members << " members, " << receivers << " receivers");
      REQUIRE(run(s).failure == "");
    }
  }
}

TEST_CASE("an exchange sends each update to its receivers and to nobody else") {
  for (const std::size_t receivers : {1U, 3U}) {
    Scenario s = lossless(6, receivers);
    s.rounds = {exchange(24)};
    const Outcome outcome = run(s);
    REQUIRE(outcome.failure == "");
    REQUIRE(outcome.counters.blocks_retransmitted == 0);
    CHECK(outcome.counters.blocks_sent == 6 * receivers * 24);
    CHECK(outcome.counters.blocks_received == 6 * receivers * 24);
  }
}

TEST_CASE("a rank that nobody sends to gets its own update as it is") {
  Scenario s = lossless(4, 0);
  s.rounds = {exchange(5), {ElementType::kFloat32, 100}};
  REQUIRE(run(s).failure == "");
}

TEST_CASE("exact rounds and exchanges over one plan do not disturb each other") {
  Seeds::of_simulations(40).each(
      "exchanges", [](std::uint64_t seed) { REQUIRE(run(random_exchanges(seed)).failure == ""); });
}

TEST_CASE("an exchange may lack what the bounds of its tensors allow") {
  Scenario s = lossless(6, 3);
  s.link.loss = 0.05;
  s.link.bits_per_second = 100'000'000;
  s.round_bytes = 200 * kMinBlockBytes;
  s.tolerance.buckets = {bucket_of(200, 0.2F)};
  s.rounds.assign(40, exchange(200, 0, 1));
  s.in_flight = 1;
  const Outcome outcome = run(s);
  REQUIRE(outcome.failure == "");
  CHECK(outcome.counters.rounds_closed_early > 20);
  CHECK(outcome.counters.blocks_missing > 0);
  // From three senders in six trees.
  CHECK(outcome.counters.blocks_missing < std::uint64_t{200} / 5 * 3 * 6 * 40);
}

TEST_CASE("exchanges that may lack something end, whatever the network does") {
  Seeds::of_simulations(40).each("exchanges", [](std::uint64_t seed) {
    Scenario s = random_exchanges(seed);
    Dice dice(seed ^ 0xb0bb1e);
    s.link.loss = dice.maybe(0.1);
    s.tolerance.strict_rounds = static_cast<std::uint32_t>(dice.below(4));
    const auto blocks = static_cast<std::uint32_t>(20 + dice.below(60));
    s.block_bytes = kMinBlockBytes;
    s.tolerance.buckets = {bucket_of(blocks, static_cast<float>(dice.maybe(0.5)))};
    std::uint16_t step = 0;
    for (RoundPlan& round : s.rounds) {
      if (round.operation != Operation::kExchange || dice.below(4) == 0) continue;
      round = exchange(blocks, static_cast<std::uint16_t>(step++ % s.plan.selections.size()), 1);
    }
    REQUIRE(run(s).failure == "");
  });
}

TEST_CASE("ranks that exchange updates may join, leave and come back") {
  Moves moves;
  Seeds::of_simulations(20).each("exchanges", [&moves](std::uint64_t seed) {
    Scenario s = random_exchanges(seed, true);
    Dice dice(seed ^ 0x9e4b);
    if (dice.coin()) {  // some updates have loss bounds
      s.block_bytes = kMinBlockBytes;
      s.tolerance.buckets = {bucket_of(20, static_cast<float>(dice.maybe(0.5)))};
      for (RoundPlan& round : s.rounds) {
        if (round.operation == Operation::kExchange && dice.coin())
          round = exchange(20, round.source, 1);
      }
    }
    const Outcome outcome = run(s);
    REQUIRE(outcome.failure == "");
    moves.add(s, outcome);
  });
  CAPTURE(moves.joined, moves.left);
  if (!Seeds::of_simulations(20).is_whole) return;
  CHECK(moves.joined > 20);
  CHECK(moves.left > 20);
}

TEST_CASE("daemons that die in the middle of exchanges end the job, and the next job goes on") {
  std::uint64_t lost = 0;
  Seeds::of_simulations(30).each("exchanges", [&lost](std::uint64_t seed) {
    Scenario s = random_exchanges(seed, true);
    add_crashes(s);
    const Outcome outcome = run(s);
    REQUIRE(outcome.failure == "");
    lost += outcome.lost_jobs;
  });
  if (Seeds::of_simulations(30).is_whole) CHECK(lost > 15);
}

TEST_CASE("a receiver that computes for long is waited for, however far ahead its sender is") {
  // No rank sends to rank 0. So it is at once further ahead than rank 1 keeps rounds open.
  Scenario s;
  s.plan = with_selections(sharded(3), 1, [](std::size_t, std::size_t from, std::size_t to) {
    return from == 0 && to == 1;
  });
  s.rounds.assign(40, exchange(4));
  s.compute_max_of_rank = {{}, job::kMinStall * 4, {}};
  s.limit = Duration::seconds(3600);
  CHECK(run(s).failure == "");
}

TEST_CASE("a path that carries nothing ends a job that exchanges updates") {
  Scenario s = lossless(4, 2);
  s.rounds.assign(200, exchange(4));
  s.compute_max = Duration::ms(2);
  const Instant from = Instant() + Duration::ms(50);
  s.link.host_faults = {{.host = 2, .cut_from = from}};
  const Outcome outcome = run(s);
  INFO(outcome.failure);
  REQUIRE(outcome.given_up);
  CHECK((outcome.given_up->by == 2) != (outcome.given_up->because_of == 2));
  CHECK(outcome.ended < from + s.stall_after + Duration::seconds(1));
}

TEST_CASE("a plan without selections carries no exchange") {
  Scenario s;
  s.plan = sharded(3);
  s.rounds = {exchange(1)};
  s.limit = Duration::seconds(2);
  CHECK(run(s).failure != "");
}
