// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Whole daemons whose ranks exchange updates while one rank's access becomes slow. Selections must
// follow the engines' measurements, and must not change on a constant network. Run the cases with
// -s to see the times.
#include <algorithm>
#include <utility>
#include <vector>

#include "control/config/plan_request.h"
#include "control/plan/planner.h"
#include "tests/sim/redrawn.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::sim;

namespace {

constexpr std::uint64_t kMbit = 1'000'000;
constexpr std::uint16_t kNodes = 8;
constexpr std::uint32_t kFreshness = 4;
constexpr std::uint64_t kFast = 20 * kMbit;
constexpr std::uint64_t kSlow = 4 * kMbit;
/// This node's access is slow from the beginning, so the others have spare capacity.
constexpr api::NodeId kSlowNode = 2;
/// This node's access becomes as slow.
constexpr api::NodeId kChanged = 5;
constexpr std::uint32_t kRoundsOfStep = 1;
constexpr std::size_t kRoundBytes = 64 << 10;

plan::Network network_with(const std::vector<std::pair<api::NodeId, std::uint64_t>>& slow) {
  std::vector<plan::Access> accesses(kNodes, {kFast, kFast, Duration::ms(1), 0});
  for (const auto& [node, rate] : slow)
    accesses[node].up_bits_per_s = accesses[node].down_bits_per_s = rate;
  return plan::network_of_accesses(accesses);
}

config::Config config_of(const RedrawnScenario& s) {
  config::Config c;
  c.cluster.nodes = node_configs(kNodes);
  c.cluster.coordinator = 0;
  c.plan.kind = PlanKind::kSharded;
  c.plan.roots = config::ShardRoots::kTraining;
  c.plan.redraw = {.enabled = true, .every = Duration::seconds(5), .gain_ppm = 100'000};
  c.network.network = network_with({{kSlowNode, kSlow}});
  c.network.bytes = kRoundsOfStep * kRoundBytes;
  c.liveness = {.heartbeat = Duration::ms(250), .suspect_after = Duration::seconds(3)};
  c.round_bytes = s.base.round_bytes;
  c.block_bytes = s.base.block_bytes;
  c.authenticate = true;
  c.training = {.mode = config::TrainingMode::kSelectiveBsp,
                .receivers_ppm = 1,
                .selection = config::ReceiverSelection::kLinks,
                .freshness = kFreshness};
  return c;
}

/// `steps` steps. Without a change, the network is as configured.
RedrawnScenario scenario_of(std::uint32_t steps, std::optional<Duration> change_at) {
  RedrawnScenario s;
  s.base.seed = 1;
  s.base.block_bytes = kDefaultBlockBytes;
  s.base.round_bytes = kRoundBytes;
  s.base.in_flight = kRoundsOfStep;
  s.base.rounds_of_all_reduce = kRoundsOfStep;
  s.base.compute_max = Duration::ms(2);
  s.base.limit = Duration::seconds(2000);
  for (std::uint16_t n = 0; n < kNodes; ++n) s.base.plan.members.push_back({n, {n}});
  for (std::uint32_t step = 0; step < steps; ++step) {
    for (std::uint32_t r = 0; r < kRoundsOfStep; ++r)
      s.base.rounds.push_back({ElementType::kFloat32, kRoundBytes / 4, 0, Operation::kExchange,
                               static_cast<std::uint16_t>(step % (kFreshness + 1))});
  }
  s.base.link.sites = {{{}, network_with({{kSlowNode, kSlow}})}};
  if (change_at)
    s.base.link.sites.push_back(
        {Instant() + *change_at, network_with({{kSlowNode, kSlow}, {kChanged, kSlow}})});
  s.base.link.queue_bytes = 128 << 10;
  s.base.link.delay = Duration::us(50);
  s.config = config_of(s);
  s.pace = {.planning_takes = Duration::ms(10), .links_every = Duration::ms(250)};
  s.longest_pause = Duration::seconds(60);
  return s;
}

/// How many updates a node sends and receives in a cycle of selections.
std::size_t updates_of(const api::Plan& plan, api::NodeId node) {
  std::size_t updates = 0;
  for (const api::Selection& selection : plan.selections) {
    for (std::size_t m = 0; m < plan.members.size(); ++m) {
      const auto& receivers = selection.receivers[m];
      if (plan.members[m].node == node) updates += receivers.size();
      updates += static_cast<std::size_t>(std::count(receivers.begin(), receivers.end(), node));
    }
  }
  return updates;
}

api::Plan first_plan(const RedrawnScenario& s) {
  plan::PlanRequest request = config::plan_request_of(s.config);
  request.planner = PlanKind::kSharded;
  request.members = s.base.plan.members;
  auto plan = plan::make_plan(request);
  REQUIRE(plan.ok());
  return plan.value();
}

/// The mean time of a step, over the last `steps` steps.
double step_s(const RedrawnOutcome& outcome, std::uint32_t steps) {
  const auto& ends = outcome.round_ends;
  const std::size_t first = ends.size() - std::size_t{steps} * kRoundsOfStep;
  return (ends.back() - ends[first - 1]).to_seconds() / steps;
}

RedrawnOutcome played(const RedrawnScenario& s) {
  RedrawnOutcome outcome = run(s);
  REQUIRE(outcome.failure == "");
  for (const SwitchWatch::Switch& change : outcome.switches)
    UNSCOPED_INFO("at " << (change.decided_at - Instant()).to_seconds() << " s, round "
                        << change.activation_round << ": node " << kChanged << " has "
                        << updates_of(change.plan, kChanged) << " updates");
  return outcome;
}

}  // namespace

TEST_CASE("selections spare an access that becomes slow, and exchanges take less time") {
  constexpr std::uint32_t kSteps = 300;
  constexpr std::uint32_t kLast = 60;
  constexpr Duration kChangeAt = Duration::seconds(12);
  RedrawnScenario stays = scenario_of(kSteps / 2, kChangeAt);
  stays.config.plan.redraw.enabled = false;
  const RedrawnOutcome fixed = played(stays);
  CHECK(fixed.switches.empty());
  const std::size_t before = updates_of(first_plan(stays), kChanged);
  // With 4 of 16 seeds the last plan is not as good, because it saves less than plan.redraw.gain to
  // make another one. So two of three must be.
  std::size_t good = 0;
  for (const std::uint64_t seed : {6U, 7U, 8U}) {
    RedrawnScenario s = scenario_of(kSteps, kChangeAt);
    s.base.seed = seed;
    const RedrawnOutcome redrawn = played(s);
    INFO("seed " << seed << ": a step takes " << step_s(redrawn, kLast) << " s, and "
                 << step_s(fixed, kLast) << " s without redraws");
    REQUIRE(!redrawn.switches.empty());
    CHECK(redrawn.switches.front().ordered_at > Instant() + kChangeAt);
    CHECK(redrawn.switches.size() <= 3);
    CHECK(step_s(redrawn, kLast) < 0.85 * step_s(fixed, kLast));
    const bool is_spared = updates_of(redrawn.switches.back().plan, kChanged) * 2 < before;
    good += is_spared && step_s(redrawn, kLast) < 0.6 * step_s(fixed, kLast) ? 1 : 0;
    // The last plan stays for at least 15 s.
    CHECK(redrawn.switches.back().decided_at + Duration::seconds(15) < redrawn.ended);
  }
  CHECK(good >= 2);
}

namespace {

api::BucketBounds bucket_of(std::uint16_t id) {
  return {.bucket = id,
          .type = ElementType::kFloat64,
          .elements = kRoundBytes / 8,
          .tensors = {{.name = "weight",
                       .offset_elements = 0,
                       .elements = kRoundBytes / 8,
                       .bound = 0,
                       .rule = {}}}};
}

}  // namespace

/// Under bounded staleness, a change of plans waits until the streams of the old plan have ended.
TEST_CASE("selections follow the network under bounded staleness, too") {
  constexpr std::uint32_t kSteps = 300;
  RedrawnScenario s = scenario_of(kSteps, Duration::seconds(6));
  s.config.training.mode = config::TrainingMode::kSelectiveSsp;
  s.config.training.staleness = 3;
  s.base.seed = 2;
  s.base.staleness_steps = 3;
  for (std::uint16_t id = 1; id <= kRoundsOfStep; ++id)
    s.base.tolerance.buckets.push_back(bucket_of(id));
  s.base.tolerance.session_brings_tables = true;
  s.base.plan = first_plan(s);
  for (std::size_t r = 0; r < s.base.rounds.size(); ++r) {
    s.base.rounds[r].type = ElementType::kFloat64;
    s.base.rounds[r].elements = kRoundBytes / 8;
    s.base.rounds[r].bucket = static_cast<std::uint16_t>(r % kRoundsOfStep + 1);
    s.base.rounds[r].reduction = Reduction::kSum;
  }
  const RedrawnOutcome outcome = played(s);
  REQUIRE(!outcome.switches.empty());
  const std::size_t before = updates_of(first_plan(s), kChanged);
  CHECK(updates_of(outcome.switches.back().plan, kChanged) * 2 < before);
}

TEST_CASE("selections stay on a network that stays") {
  RedrawnScenario s = scenario_of(120, {});
  const RedrawnOutcome configured = played(s);
  INFO("ended after " << (configured.ended - Instant()).to_seconds() << " s");
  CHECK(configured.switches.empty());
  s.config.network.network.reset();
  const RedrawnOutcome measured = played(s);
  INFO("not configured, after " << (measured.ended - Instant()).to_seconds() << " s");
  for (const SwitchWatch::Switch& change : measured.switches)
    CHECK(change.decided_at < Instant() + Duration::seconds(15));
}
