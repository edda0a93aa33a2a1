// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How long rounds stop when a coordinator dies during a change of plans. Run the cases with -s to
// see the times.
#include "tests/sim/redrawn.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::sim;

namespace {

constexpr std::array<std::uint64_t, 2> kSeeds = {2, 4};
const session::SessionConfig kDefaults;
/// The limit in docs/decisions/0019 for the default times.
constexpr double kLongestWait_s = 1.0;
/// The time between two rounds that are complete at all ranks, without a death.
constexpr double kNoWait_s = 0.25;

/// Whole daemons with the default times. The coordinator dies in its first redraw, when half of the
/// nodes have reached this phase.
RedrawnScenario scenario_of(std::uint64_t seed, SwitchPhase phase) {
  RedrawnScenario s = random_redrawn_scenario(seed);
  s.config.liveness = {.heartbeat = kDefaults.heartbeat, .suspect_after = kDefaults.suspect_after};
  s.config.gather = {};
  s.base.tolerance = {};
  s.base.rounds.assign(3000, {ElementType::kFloat32, 500});
  s.base.compute_max = Duration::ms(5);
  s.base.compute_max_of_rank.clear();
  s.base.link.loss = s.base.link.duplication = 0;
  s.base.link.bursts.reset();
  s.base.link.host_faults.clear();
  s.late.reset();
  s.strikes = {{{phase, 1, 0.5}, Misfortune::kDies, {}}};
  s.longest_pause = Duration::seconds(60);
  return s;
}

/// The longest time after the death in which no round was completed at all ranks.
double pause_in(SwitchPhase phase, std::size_t& deaths) {
  Duration longest;
  for (const std::uint64_t seed : kSeeds) {
    const RedrawnOutcome outcome = run(scenario_of(seed, phase));
    INFO("seed " << seed);
    REQUIRE(outcome.failure.empty());
    const auto at = static_cast<std::size_t>(phase);
    deaths += outcome.totals.struck[at][static_cast<std::size_t>(Misfortune::kDies)];
    longest = std::max(longest, outcome.totals.longest_after[at]);
  }
  return longest.to_seconds();
}

}  // namespace

TEST_CASE("rounds do not wait for a dead coordinator until it is lost") {
  for (std::size_t p = 0; p < kSwitchPhases; ++p) {
    const auto phase = static_cast<SwitchPhase>(p);
    INFO(switch_phase_name(phase));
    std::size_t deaths = 0;
    const double pause_s = pause_in(phase, deaths);
    CHECK(deaths > 0);
    const bool is_prepared_somewhere =
        phase >= SwitchPhase::kPreparing && phase <= SwitchPhase::kCommitting;
    CHECK(pause_s <= (is_prepared_somewhere ? kLongestWait_s : kNoWait_s));
  }
}
