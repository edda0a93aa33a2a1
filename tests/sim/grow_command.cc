// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/grow_command.h"

#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <utility>

#include "control/daemon/planners.h"
#include "tests/sim/redrawn.h"
#include "tests/support/plan_networks.h"

namespace gradplane::sim {
namespace {

/// Rounds after the request for another plan: as many as may pass before its activation, and some
/// more.
constexpr std::uint32_t kRoundsAfter = 80;
constexpr Duration kRest = Duration::seconds(10);
constexpr double kMilli = 1e3;
constexpr double kKibi = 1024;

/// Sites with about six neighbours each, as in `plan_times`.
plan::Network network_of(std::size_t nodes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  return testing::random_network(random, nodes, nodes / 4);
}

RedrawnScenario scenario_of(std::size_t nodes, std::uint32_t rounds, std::uint32_t blocks,
                            std::uint64_t seed) {
  RedrawnScenario s;
  s.base.seed = seed;
  s.base.link.sites = {{{}, network_of(nodes, seed)}};
  s.base.link.queue_bytes = 256 << 10;
  s.base.block_bytes = kDefaultBlockBytes;
  s.base.round_bytes = blocks * kDefaultBlockBytes;
  s.base.in_flight = kMaxInFlightRounds;
  s.base.compute_max = {};
  s.base.limit = Duration::seconds(600);
  const auto elements = static_cast<std::uint32_t>(s.base.round_bytes / sizeof(float));
  s.base.rounds.assign(rounds + kRoundsAfter, {ElementType::kFloat32, elements});
  config::Config& c = s.config;
  c.cluster.nodes = node_configs(s.base.link.sites[0].network.nodes.size());
  for (std::size_t n = 0; n < c.cluster.nodes.size(); ++n)
    s.base.plan.members.push_back({static_cast<api::NodeId>(n), {static_cast<std::uint16_t>(n)}});
  c.plan.kind = PlanKind::kPacked;
  c.plan.redraw.enabled = false;
  c.network = {.network = s.base.link.sites[0].network, .bytes = plan::kDefaultTrafficBytes};
  c.liveness = {.heartbeat = Duration::ms(250), .suspect_after = Duration::seconds(3)};
  c.round_bytes = s.base.round_bytes;
  c.block_bytes = s.base.block_bytes;
  s.pace = {.planning_takes = Duration::ms(1), .links_every = Duration::seconds(1)};
  s.longest_pause = Duration::seconds(60);
  s.ask_at_round = rounds;
  // The new plan has the same kind, so that both are about as large, and another root.
  s.ask = {PlanKind::kPacked, {static_cast<api::NodeId>(nodes - 1)}, {}};
  s.rests = kRest;
  return s;
}

/// The time that the production planner takes for the first plan, and the plan's number of trees.
std::pair<double, std::size_t> plan_time(const RedrawnScenario& s) {
  const auto begin = std::chrono::steady_clock::now();
  const auto made = daemon::planner_of(s.config)(
      {.epoch = 1, .activation_round = 0, .members = s.base.plan.members});
  const auto took = std::chrono::steady_clock::now() - begin;
  return {std::chrono::duration<double>(took).count(),
          made.ok() ? made.value().plan.trees.size() : 0};
}

}  // namespace

GrowCommand::GrowCommand(CLI::App& app)
    : command_(app.add_subcommand("grow", "plans, control traffic, switches and rounds by size")) {
  command_->add_option("--nodes", nodes_, "how many, each a site with a rank");
  command_->add_option("--rounds", rounds_, "before another plan is asked for");
  command_->add_option("--blocks", blocks_, "of a round");
}

bool GrowCommand::run(std::uint64_t seed) const {
  bool good = true;
  for (const std::size_t nodes : nodes_) good = run_size(nodes, seed) && good;
  return good;
}

bool GrowCommand::run_size(std::size_t nodes, std::uint64_t seed) const {
  const RedrawnScenario s = scenario_of(nodes, rounds_, blocks_, seed);
  const auto [planned_s, trees] = plan_time(s);
  const RedrawnOutcome o = sim::run(s);
  std::printf("%5zu nodes: %.3f s to plan, %zu trees; ", s.config.cluster.nodes.size(), planned_s,
              trees);
  if (!o.failure.empty()) {
    std::printf("%s\n", o.failure.c_str());
    return false;
  }
  const auto bytes_between = [](const RedrawnMark& a, const RedrawnMark& b) {
    return static_cast<double>(b.control.bytes - a.control.bytes);
  };
  const double at_rest = bytes_between(o.finished, o.rested) / kRest.to_seconds();
  const double switch_s = (o.agreed.at - o.asked.at).to_seconds();
  const double of_switch = bytes_between(o.asked, o.agreed) - at_rest * switch_s;
  const double round_s = (o.asked.at - o.began.at).to_seconds() / rounds_;
  const SwitchWatch::Switch& change = o.switches.front();
  const Instant active = o.round_ends[change.activation_round];
  std::printf(
      "control at rest %.1f KiB/s, of a switch %.0f KiB; commit after %.0f ms, on all nodes "
      "after %.0f ms, first round of the plan after %.0f ms; a round %.1f ms; %llu packets\n",
      at_rest / kKibi, of_switch / kKibi,
      (change.committed_at - change.decided_at).to_seconds() * kMilli,
      (o.agreed.at - change.decided_at).to_seconds() * kMilli,
      (active - change.decided_at).to_seconds() * kMilli, round_s * kMilli,
      static_cast<unsigned long long>(o.packets));
  std::fflush(stdout);
  return true;
}

}  // namespace gradplane::sim
