// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/changing_command.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "control/plan/packing_bound.h"
#include "tests/sim/redrawn.h"

namespace gradplane::sim {
namespace {

constexpr double kBytesPerMegabyte = 1e6;
constexpr double kNs = 1e9;
constexpr double kMicro = 1e6;
constexpr double kMillion = 1e6;
constexpr double kPercent = 100;
/// A run that takes so many times the time of its first draw counts as hung.
constexpr double kHung = 10;

using Draw = ChangingCommand::Draw;

double seconds_of(Instant at) {
  return (at - Instant()).to_seconds();
}

template <typename Kind, typename Names>
Kind named(const Names& names, const std::string& name) {
  return static_cast<Kind>(std::find(names.begin(), names.end(), name) - names.begin());
}

Draw draw_of(const plan::Network& network, double from_s, const WanLoad& load) {
  const plan::PlanRequest request = wan_request(network, PlanKind::kPacked, load);
  const double on_wire = 1 + static_cast<double>(request.traffic.overhead_bytes) /
                                 static_cast<double>(request.traffic.block_bytes);
  return {from_s, plan::packing_bound_s_per_bit(request).value() * 8 * on_wire};
}

/// When the oracle, which always has the best trees, has done `bytes` bytes that begin at `from_s`.
double oracle_s(const std::vector<Draw>& draws, double from_s, double bytes) {
  double at = from_s;
  for (std::size_t d = 0; d < draws.size(); ++d) {
    const bool is_last = d + 1 == draws.size();
    if (!is_last && draws[d + 1].from_s <= at) continue;
    const double needs_s = bytes * draws[d].bound_s_per_byte;
    if (is_last || at + needs_s <= draws[d + 1].from_s) return at + needs_s - from_s;
    bytes -= (draws[d + 1].from_s - at) / draws[d].bound_s_per_byte;
    at = draws[d + 1].from_s;
  }
  return at - from_s;
}

}  // namespace

ChangingCommand::ChangingCommand(CLI::App& app)
    : command_(app.add_subcommand("changing", "an all_reduce while NetStorm's links change")) {
  command_->add_option("--every", every_s_, "seconds between two draws of the links");
  command_->add_option("--megabytes", megabytes_, "of the all_reduce");
  command_->add_option("--round-kib", round_kib_, "of a round, as rounds.bytes");
  command_->add_option("--planner", planner_, "the planner of the job")
      ->check(CLI::IsMember({"star", "sharded", "fapt", "packed", "auto"}));
  command_->add_option("--controller", controller_, "as congestion.controller")
      ->check(CLI::IsMember(
          std::vector<std::string>(kControllerNames.begin(), kControllerNames.end())));
  command_->add_option("--scale", scale_, "of all rates")->check(CLI::PositiveNumber);
  command_->add_flag("--delays", paths_.delayed, "links of 10 to 150 ms one way");
  command_->add_flag("--losses", paths_.lossy, "links that lose 0.1 to 2 %");
  command_->add_flag("--fixed", fixed_, "the first plan stays");
  command_->add_flag("--auxiliary", routes_, "plans have auxiliary routes");
  command_->add_option("--redraw-every", redraw_every_s_, "as plan.redraw.every, in seconds");
  command_->add_option("--at-most", at_most_, "over the oracle, else it is a failure");
}

/// Draws the links' rates, for longer than any useful run takes.
std::vector<ChangingCommand::Draw> ChangingCommand::add_draws(RedrawnScenario& s,
                                                              const WanLoad& load) const {
  std::vector<Draw> draws;
  double from_s = 0;
  do {
    plan::Network network = wan_network(s.base.seed + draws.size(), paths_);
    for (std::size_t l = 0; l < network.links.size(); ++l) {
      plan::Link& link = network.links[l];
      link.bits_per_s = static_cast<std::uint64_t>(static_cast<double>(link.bits_per_s) * scale_);
      if (draws.empty()) continue;
      // Routes stay the same, as in NetStorm's network.
      const plan::Link& first = s.base.link.sites[0].network.links[l];
      link.rtt = first.rtt;
      link.loss_ppm = first.loss_ppm;
    }
    s.base.link.sites.push_back(
        {Instant::from_ns(static_cast<std::int64_t>(from_s * kNs)), network});
    draws.push_back(draw_of(network, from_s, load));
    from_s += every_s_;
  } while (from_s < kHung * megabytes_ * kBytesPerMegabyte * draws[0].bound_s_per_byte);
  s.base.limit = Duration::seconds(static_cast<std::int64_t>(from_s));
  return draws;
}

void ChangingCommand::configure(RedrawnScenario& s) const {
  for (std::size_t n = 0; n < s.base.link.sites[0].network.nodes.size(); ++n)
    s.base.plan.members.push_back({static_cast<api::NodeId>(n), {static_cast<std::uint16_t>(n)}});
  config::Config& c = s.config;
  c.cluster.nodes = node_configs(s.base.link.sites[0].network.nodes.size());
  c.plan.kind = named<PlanKind>(kPlanKindNames, planner_);
  c.plan.auxiliary = routes_;
  c.plan.redraw = {.enabled = !fixed_,
                   .every = Duration::us(static_cast<std::int64_t>(redraw_every_s_ * kMicro)),
                   .gain_ppm = 100'000};
  c.network = {.network = s.base.link.sites[0].network, .bytes = plan::kDefaultTrafficBytes};
  c.liveness = {.heartbeat = Duration::ms(250), .suspect_after = Duration::seconds(3)};
  c.round_bytes = s.base.round_bytes;
  c.block_bytes = s.base.block_bytes;
  c.authenticate = true;
  c.congestion.controller = named<ControllerKind>(kControllerNames, controller_);
  s.pace = {.planning_takes = Duration::ms(10), .links_every = Duration::ms(250)};
  s.longest_pause = Duration::seconds(60);
}

bool ChangingCommand::report(const RedrawnOutcome& o, const std::vector<Draw>& draws) const {
  const double bytes = megabytes_ * kBytesPerMegabyte;
  const double round_bytes = bytes / static_cast<double>(o.round_ends.size());
  const auto ended_before = [&o](double s) {
    const auto found = std::lower_bound(o.round_ends.begin(), o.round_ends.end(), s,
                                        [](Instant at, double t) { return seconds_of(at) < t; });
    return static_cast<double>(found - o.round_ends.begin());
  };
  const double took_s = seconds_of(o.round_ends.back());
  for (std::size_t d = 0; d < draws.size() && draws[d].from_s < took_s; ++d) {
    const double to_s = std::min(draws[d].from_s + every_s_, took_s);
    const double rounds = ended_before(to_s) - ended_before(draws[d].from_s);
    std::printf("  from %6.1f s on: %6.1f Mbit/s, of %6.1f that trees could sum\n", draws[d].from_s,
                8 * rounds * round_bytes / (to_s - draws[d].from_s) / kMillion,
                8 / draws[d].bound_s_per_byte / kMillion);
  }
  for (const SwitchWatch::Switch& change : o.switches)
    std::printf("  at %6.1f s another plan was decided, from round %u on\n",
                seconds_of(change.decided_at), change.activation_round);
  const double best_s = oracle_s(draws, 0, bytes);
  const double rest = bytes - ended_before(every_s_) * round_bytes;
  std::printf("  %.1f s, the oracle %.1f s (%.2f)", took_s, best_s, took_s / best_s);
  if (took_s > every_s_)
    std::printf(", after the first draw (%.2f)",
                (took_s - every_s_) / oracle_s(draws, every_s_, rest));
  std::printf("; sent again %.2f %%; %zu switches; all sums right\n",
              kPercent * static_cast<double>(o.counters.blocks_retransmitted) /
                  static_cast<double>(o.counters.blocks_sent),
              o.switches.size());
  std::fflush(stdout);
  return at_most_ == 0 || took_s <= at_most_ * best_s;
}

bool ChangingCommand::run(std::uint64_t seed) const {
  const WanLoad load{.bytes = static_cast<std::uint64_t>(megabytes_ * kBytesPerMegabyte),
                     .round_bytes = round_kib_ << 10};
  RedrawnScenario s;
  s.base = wan_scenario({}, {}, load, seed);
  const std::vector<Draw> draws = add_draws(s, load);
  configure(s);
  std::printf("seed %" PRIu64 ", %g MB, links drawn every %g s%s%s; %s%s%s over %s\n", seed,
              megabytes_, every_s_, paths_.delayed ? ", with delays" : "",
              paths_.lossy ? ", with losses" : "", planner_.c_str(), fixed_ ? " that stays" : "",
              routes_ ? " with auxiliary routes" : "", controller_.c_str());
  const RedrawnOutcome o = sim::run(s);
  if (o.failure.empty()) return report(o, draws);
  std::printf("  %s\n", o.failure.c_str());
  return false;
}

}  // namespace gradplane::sim
