// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Exchanges under bounded staleness, with whole engines in virtual time. StreamChecker checks each
// result, also when ranks join, leave or die, and ranks wait for no others.
#include <algorithm>

#include "tests/property/exchange_scenarios.h"
#include "tests/property/seeds.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::sim;
using gradplane::testing::Seeds;

namespace {

constexpr std::uint32_t kElementsOfBlock = kMinBlockBytes / 8;

api::BucketBounds wide_bucket(std::uint16_t id, std::uint32_t blocks, float bound) {
  const std::uint32_t elements = blocks * kElementsOfBlock;
  return {.bucket = id,
          .type = ElementType::kFloat64,
          .elements = elements,
          .tensors = {{.name = "weight",
                       .offset_elements = 0,
                       .elements = elements,
                       .bound = bound,
                       .rule = {}}}};
}

struct Training {
  std::uint16_t members = 4;
  std::uint32_t staleness_steps = 2;
  std::size_t selections = 3;
  std::uint32_t steps = 40;
  std::vector<std::uint32_t> bucket_blocks = {8};
  float bound = 0;
};

/// Steps with some buckets each, and with the selections that `receives` defines.
Scenario scenario_of(const Training& t, const auto& receives) {
  Scenario s;
  s.plan = with_selections(sharded(t.members), t.selections, receives);
  s.staleness_steps = t.staleness_steps;
  s.compute_max = {};
  s.rounds.clear();
  for (std::size_t b = 0; b < t.bucket_blocks.size(); ++b) {
    const auto id = static_cast<std::uint16_t>(b + 1);
    s.tolerance.buckets.push_back(wide_bucket(id, t.bucket_blocks[b], t.bound));
  }
  for (std::uint32_t step = 0; step < t.steps; ++step) {
    for (std::size_t b = 0; b < t.bucket_blocks.size(); ++b) {
      s.rounds.push_back({ElementType::kFloat64, t.bucket_blocks[b] * kElementsOfBlock,
                          static_cast<std::uint16_t>(b + 1), Operation::kExchange,
                          static_cast<std::uint16_t>(step % t.selections)});
    }
  }
  s.in_flight = t.bucket_blocks.size();
  return s;
}

bool all(std::size_t /*selection*/, std::size_t from, std::size_t to) {
  return from != to;
}

/// `other_members`: the plan changes, and ranks join and leave.
Scenario random_training(std::uint64_t seed, bool other_members = false) {
  Dice dice(seed ^ 0x57a1e);
  Training t;
  t.members = static_cast<std::uint16_t>(2 + dice.below(6));
  t.staleness_steps = static_cast<std::uint32_t>(1 + dice.below(6));
  t.selections = 1 + dice.below(kMaxSelections);
  t.steps = static_cast<std::uint32_t>(20 + dice.below(60));
  t.bucket_blocks.clear();
  t.bound = static_cast<float>(dice.maybe(0.3));
  for (std::size_t b = 1 + dice.below(5); b > 0; --b)
    t.bucket_blocks.push_back(static_cast<std::uint32_t>(1 + dice.below(30)));
  const auto receives = [&](std::size_t, std::size_t from, std::size_t to) {
    return from != to && dice.coin();
  };
  Scenario s = scenario_of(t, receives);
  s.seed = seed;
  if (dice.coin()) s.plan.activation_round = 0xffffffc0;  // round numbers wrap around
  s.link.loss = dice.maybe(0.1);
  s.link.duplication = dice.maybe(0.1);
  s.compute_max = Duration::us(static_cast<std::int64_t>(dice.below(5000)));
  s.compute_max_of_rank.assign(t.members, s.compute_max);
  if (dice.coin()) s.compute_max_of_rank[dice.below(t.members)] = Duration::ms(30);
  if (dice.coin()) add_groups(s);
  if (dice.coin()) add_routes(s);
  if (other_members) draw_plans(s, dice, 1 + dice.below(5), receives);
  for (std::size_t flips = dice.coin() ? 1 + dice.below(4) : 0; flips > 0 && !other_members;
       --flips) {
    api::Plan next = s.plan;
    next.selections.clear();
    next = with_selections(std::move(next), t.selections, receives);
    next.epoch = s.plan.epoch + 1 + static_cast<std::uint32_t>(s.flips.size());
    s.flips.push_back(next);
  }
  s.flip_every = static_cast<std::uint32_t>(5 + dice.below(40));
  // Sometimes all ranks run an exact sum, as for their parameters.
  for (std::size_t r = 0; r < s.rounds.size(); ++r) {
    if (dice.below(12) != 0) continue;
    s.rounds.insert(s.rounds.begin() + static_cast<std::ptrdiff_t>(r),
                    {ElementType::kFloat32, static_cast<std::uint32_t>(1 + dice.below(5000))});
  }
  return s;
}

}  // namespace

TEST_CASE("under bounded staleness each update is in one result, and in time") {
  Seeds::of_simulations(30).each("stale_exchanges", [](std::uint64_t seed) {
    REQUIRE(run(random_training(seed)).failure == "");
  });
}

TEST_CASE("under bounded staleness ranks may join, leave and come back") {
  Moves moves;
  Seeds::of_simulations(30).each("stale_exchanges", [&moves](std::uint64_t seed) {
    const Scenario s = random_training(seed, true);
    const Outcome outcome = run(s);
    REQUIRE(outcome.failure == "");
    moves.add(s, outcome);
  });
  CAPTURE(moves.joined, moves.left);
  if (!Seeds::of_simulations(30).is_whole) return;
  CHECK(moves.joined > 30);
  CHECK(moves.left > 30);
}

TEST_CASE("a rank that joins waits once, until all others have come to its plan") {
  // Rank 1 is far behind the first round of the further plan. Rank 4 begins there at once.
  Training t;
  t.steps = 120;
  t.staleness_steps = 2;
  t.bucket_blocks = {1};
  Scenario s = scenario_of(t, all);
  s.compute_max = Duration::ms(1);
  s.compute_max_of_rank = {{}, Duration::ms(30), {}, {}, {}};
  api::Plan next = with_selections(sharded_over({0, 1, 2, 3, 4}), t.selections, all);
  next.epoch = s.plan.epoch + 1;
  s.flips = {next};
  const Outcome outcome = run(s);
  CHECK(outcome.failure == "");
  CHECK(outcome.activations.size() == 1);
}

TEST_CASE("daemons that die in the middle of updates end the job, and the next job goes on") {
  std::uint64_t lost = 0;
  Seeds::of_simulations(30).each("stale_exchanges", [&lost](std::uint64_t seed) {
    Scenario s = random_training(seed, seed % 2 == 0);
    add_crashes(s);
    const Outcome outcome = run(s);
    REQUIRE(outcome.failure == "");
    lost += outcome.lost_jobs;
  });
  if (Seeds::of_simulations(30).is_whole) CHECK(lost > 15);
}

TEST_CASE("a daemon whose death nobody else notices holds updates for a bounded time") {
  Training t;
  t.steps = 200;
  Scenario s = scenario_of(t, all);
  s.compute_max = Duration::ms(2);
  Crash crash;
  crash.host = 2;
  crash.after = Duration::ms(50);
  crash.noticed_from = crash.noticed_until = Duration::seconds(10'000);
  crash.restarts = false;
  s.crashes = {crash};
  const Outcome outcome = run(s);
  CHECK(outcome.failure == "");
  CHECK(outcome.lost_jobs == 1);
  CHECK(outcome.ended < Instant() + s.stall_after + Duration::seconds(1));
}

TEST_CASE("a path that carries nothing ends a job under bounded staleness") {
  Training t;
  t.steps = 200;
  const Instant from = Instant() + Duration::ms(50);
  const HostFault cut{.host = 2, .cut_from = from};
  const HostFault deaf{.host = 2, .loss_received = 1};
  const HostFault mute{.host = 2, .loss_sent = 1};
  for (const HostFault& fault : {cut, deaf, mute}) {
    Scenario s = scenario_of(t, all);
    s.compute_max = Duration::ms(2);
    s.link.host_faults = {fault};
    const Outcome outcome = run(s);
    INFO(outcome.failure);
    REQUIRE(outcome.given_up);
    CHECK((outcome.given_up->by == 2) != (outcome.given_up->because_of == 2));
    CHECK(outcome.given_up->stall.reason == Stall::Reason::kPushesUnacked);
    CHECK(outcome.ended < from + s.stall_after + Duration::seconds(1));
  }
}

TEST_CASE("no rank waits for one that is behind by no more than the bound") {
  // Rank 2 computes for up to 40 ms, and the others do not. So the others are nearly always ahead.
  Training t;
  t.staleness_steps = 4;
  Scenario s = scenario_of(t, all);
  s.compute_max_of_rank = {{}, {}, Duration::ms(40), {}};
  const Outcome outcome = run(s);
  REQUIRE(outcome.failure == "");
  CHECK(outcome.counters.updates_received == 40 * 4 * 3);
  // Each of the three other ranks has its results of nearly all steps before rank 2 sends.
  CHECK(outcome.counters.updates_late > 3 * 30);
}

TEST_CASE("a rank that stops lets the others go on for the bound and no further") {
  Training t;
  t.staleness_steps = 3;
  Scenario s = scenario_of(t, all);
  s.compute_max_of_rank = {{}, Duration::seconds(1000), {}, {}};
  s.limit = Duration::seconds(5);
  const Outcome outcome = run(s);
  CHECK(outcome.failure.find("I3: no end") != std::string::npos);
  INFO(outcome.failure);
  // The first round of rank 1 is sent at once.
  CHECK(outcome.counters.rounds_completed == 1 + 3 * (1 + 3));
}

TEST_CASE("a rank that pauses before a round of all is waited for") {
  // The others get further ahead than a node keeps rounds open. They wait there for longer than the
  // time limit for a rank that does not answer.
  Training t;
  t.staleness_steps = 4;
  t.steps = 12;
  t.bucket_blocks = {1, 2, 1, 3, 1};
  Scenario s = scenario_of(t, all);
  for (std::size_t step = 11; step > 0; --step) {
    if (step % 4 != 0) continue;
    s.rounds.insert(s.rounds.begin() + static_cast<std::ptrdiff_t>(step * 5),
                    {ElementType::kFloat32, 300});
  }
  s.compute_max_of_rank = {{}, {}, job::kMinStall * 4, {}};
  s.limit = Duration::seconds(3600);
  REQUIRE(run(s).failure == "");
}

TEST_CASE("who is not selected gets word of an update, and nothing of it") {
  Training t;
  t.steps = 10;
  t.selections = 1;
  const Scenario s =
      scenario_of(t, [](std::size_t, std::size_t from, std::size_t to) { return to == from + 1; });
  const Outcome outcome = run(s);
  REQUIRE(outcome.failure == "");
  REQUIRE(outcome.counters.blocks_retransmitted == 0);
  // Three pairs exchange an update of eight blocks, and nine pairs one empty block.
  CHECK(outcome.counters.blocks_sent == 10 * (3 * 8 + 9));
  CHECK(outcome.counters.updates_received == 10 * 3);
}

TEST_CASE("updates may lack what the bounds of their tensors allow") {
  Training t;
  t.bucket_blocks = {200};
  t.bound = 0.2F;
  Scenario s = scenario_of(t, all);
  s.round_bytes = 200 * kMinBlockBytes;
  s.link.loss = 0.05;
  s.link.bits_per_second = 100'000'000;
  const Outcome outcome = run(s);
  REQUIRE(outcome.failure == "");
  CHECK(outcome.counters.rounds_closed_early > 40);
  CHECK(outcome.counters.blocks_missing > 0);
  CHECK(outcome.counters.blocks_missing < std::uint64_t{200} / 5 * 12 * 40);
}
