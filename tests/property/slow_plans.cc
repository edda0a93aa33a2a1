// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How soon a further plan comes into force if rounds are slow, with whole engines.
#include "tests/sim/cluster.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::sim;

namespace {

/// Six nodes whose rounds take about 0.25 s. Each plan is requested when the rounds of the plan
/// before have come to at most 32 rounds before `flip_every`.
Outcome run_slowly(Duration flip_message_max) {
  Scenario s = flip_scenario(1, 200);
  s.link.loss = s.link.duplication = 0;
  s.in_flight = 2;
  s.compute_max = Duration::ms(300);
  s.flip_message_max = flip_message_max;
  s.limit = Duration::seconds(600);
  return run(s);
}

/// Rounds from the one that was complete when the plan was requested to the first round of the
/// plan.
std::uint32_t wait_of(const Outcome& outcome, std::size_t flip) {
  constexpr std::uint32_t kFlipEvery = 50;
  const Scenario s = flip_scenario(1, 200);
  const auto asked = static_cast<std::uint32_t>(kFlipEvery * (flip + 1));
  return s.index_of(outcome.activations[flip]) - (asked - kMaxActivationMarginRounds);
}

}  // namespace

TEST_CASE("a plan comes into force after about a second where rounds are slow") {
  const Outcome outcome = run_slowly(Duration::ms(50));
  INFO(outcome.failure);
  REQUIRE(outcome.failure.empty());
  REQUIRE(outcome.activations.size() == 3);
  // Before the first flip, little is known about the time of rounds. A second has about five
  // rounds, and two are open at a time.
  for (const std::size_t flip : {1, 2}) {
    INFO("after " << wait_of(outcome, flip) << " rounds");
    CHECK(wait_of(outcome, flip) >= 3);
    CHECK(wait_of(outcome, flip) <= 14);
  }
}

TEST_CASE("rounds wait where the nodes need longer to agree on a plan than was expected") {
  const Outcome outcome = run_slowly(Duration::seconds(2));
  INFO(outcome.failure);
  CHECK(outcome.failure.empty());
  CHECK(outcome.activations.size() == 3);
}
