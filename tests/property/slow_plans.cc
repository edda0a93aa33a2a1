// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How soon a further plan comes into force where rounds are slow, over whole engines.
#include "tests/sim/cluster.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::sim;

namespace {

/// Six nodes whose rounds take some 0.25 s each. Each of the first plans is asked for when its
/// rounds have been completed up to 32 before `flip_every` more.
Outcome run_slowly(Duration flip_message_max) {
  Scenario s = flip_scenario(1, 200);
  s.link.loss = s.link.duplication = 0;
  s.in_flight = 2;
  s.compute_max = Duration::ms(300);
  s.flip_message_max = flip_message_max;
  s.limit = Duration::seconds(600);
  return run(s);
}

/// Between the round that was completed when the plan was asked for and its first one.
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
  // Little is known before the first one. A second has five rounds, and two are open at a time.
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
