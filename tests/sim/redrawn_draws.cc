// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "control/daemon/planners.h"
#include "control/plan/planner.h"
#include "tests/sim/dice.h"
#include "tests/sim/redrawn.h"
#include "tests/sim/site_draws.h"
#include "tests/sim/tolerant_draws.h"
#include "tests/support/plan_networks.h"

namespace gradplane::sim {

std::vector<config::NodeConfig> node_configs(std::size_t count) {
  constexpr std::uint32_t kFirstAddress = 0x0a000001;
  std::vector<config::NodeConfig> nodes(count);
  for (std::size_t n = 0; n < count; ++n) {
    nodes[n].name = std::string("n").append(std::to_string(n));
    nodes[n].address = {kFirstAddress + static_cast<std::uint32_t>(n)};
  }
  return nodes;
}

namespace {

constexpr Duration kSuspectAfter = Duration::seconds(1);
constexpr std::uint64_t kMostPure = 2;     // nodes that may coordinate but have no part in the job
constexpr std::uint64_t kMostRelays = 2;   // nodes that may sum but have no ranks
constexpr std::uint64_t kMostWorkers = 6;  // nodes with ranks
constexpr std::uint64_t kMostRanks = 2;    // on a node
constexpr std::uint64_t kMostChanges = 5;  // of the network
constexpr std::uint64_t kSlower = 10;
constexpr std::int64_t kShorter = 4;
constexpr DrawSize kSize = {
    .uses = 301, .most_blocks = 32, .fewest_steps = 150, .most_steps = 300, .exact_elements = 600};
/// A host is cut off only at the beginning of a run, and so shortly that even with a coordinator's
/// pause it is silent for less than kSuspectAfter.
constexpr Duration kCutsWithin = Duration::seconds(8);
constexpr Duration kLongestCut = kSuspectAfter / 4;
/// The longest pause: a silence, the search for a coordinator, the reports to it, and the
/// retransmissions of a round that was open meanwhile.
constexpr std::int64_t kPauseInSuspicions = 12;
constexpr std::array kKinds = {PlanKind::kPacked, PlanKind::kPacked, PlanKind::kFapt,
                               PlanKind::kAuto};
/// Controllers that fill long paths. A fixed rate overruns them, and swift is for short paths.
constexpr std::array kControllers = {ControllerKind::kDelay, ControllerKind::kReno,
                                     ControllerKind::kCubic, ControllerKind::kBbr};

void draw_config(Dice& dice, RedrawnScenario& s, std::size_t pure, std::size_t relays,
                 std::size_t nodes) {
  config::Config& c = s.config;
  c.cluster.nodes = node_configs(nodes);
  for (std::size_t n = pure; n < pure + relays; ++n) c.cluster.nodes[n].aggregate = true;
  c.cluster.coordinator = static_cast<api::NodeId>(dice.below(pure));
  c.plan.kind = kKinds[dice.below(kKinds.size())];
  c.plan.auxiliary = dice.below(3) == 0;
  c.plan.redraw = {.enabled = true, .every = Duration::ms(500), .gain_ppm = 100'000};
  c.network.bytes = plan::kDefaultTrafficBytes;
  c.liveness = {.heartbeat = kSuspectAfter / 8, .suspect_after = kSuspectAfter};
  c.round_bytes = s.base.round_bytes;
  c.block_bytes = s.base.block_bytes;
  c.forward_order = dice.coin();
  c.authenticate = true;
  c.congestion.controller = kControllers[dice.below(kControllers.size())];
}

/// An absence that is so short that the coordinator is at most doubted, or longer than any node
/// waits. In between, some nodes may have lost the coordinator and others not. The coordinator then
/// says that the first are lost, and the job ends (docs/decisions/0019).
Duration draw_absence(Dice& dice) {
  if (dice.coin()) return dice.between({}, kSuspectAfter * 7 / 10);
  return dice.between(kSuspectAfter * 2, kSuspectAfter * 4);
}

void draw_strikes(Dice& dice, RedrawnScenario& s, std::uint64_t seed) {
  for (std::uint64_t n = 0; n < 2; ++n) {
    RedrawnStrike& strike = s.strikes.emplace_back();
    strike.when.phase = static_cast<SwitchPhase>((seed + n) % kSwitchPhases);
    strike.when.redraw = static_cast<std::uint32_t>(1 + n + dice.below(2));
    strike.when.share = static_cast<double>(dice.below(100)) / 100;
    strike.what = static_cast<Misfortune>(dice.below(kMisfortunes));
    strike.lasts = draw_absence(dice);
  }
}

/// Makes links slower and their delays shorter, so that small rounds fill them.
plan::Network scaled(plan::Network network) {
  const auto slow = [](std::uint64_t& rate) {
    if (rate != plan::kUnlimited) rate /= kSlower;
  };
  for (plan::Link& link : network.links) {
    slow(link.bits_per_s);
    link.rtt = link.rtt / kShorter;
  }
  for (plan::Node& node : network.nodes) {
    slow(node.access.up_bits_per_s);
    slow(node.access.down_bits_per_s);
  }
  return network;
}

/// The network of the configuration. Mostly each node has its own site and there are many possible
/// trees; a chain would leave no choice.
plan::Network draw_file(Dice& dice, std::size_t nodes, std::uint64_t seed) {
  if (dice.below(4) == 0) return draw_sites(dice, nodes);
  std::mt19937_64 random(seed);
  return testing::random_network(random, nodes, 1 + dice.below(2));
}

/// Draws rates that differ from the configured network's, over the same links.
void draw_links(Dice& dice, Scenario& s, const plan::Network& file) {
  plan::Network network = redraw_sites(dice, file);
  s.link.sites = {{{}, scaled(network)}};
  Instant at;
  for (std::uint64_t n = 2 + dice.below(kMostChanges - 1); n > 0; --n) {
    at = at + dice.between(Duration::ms(1000), Duration::seconds(4));
    network = redraw_sites(dice, std::move(network));
    s.link.sites.push_back({at, scaled(network)});
  }
  s.link.queue_bytes = 16'000 + dice.below(1 << 17);
  s.link.delay = Duration::us(static_cast<std::int64_t>(1 + dice.below(500)));
  s.link.jitter = Duration::us(dice.coin() ? 0 : static_cast<std::int64_t>(1 + dice.below(500)));
  s.link.loss = dice.maybe(0.02);
  s.link.duplication = dice.maybe(0.02);
}

/// Writes a rule for the bound of each tensor, as an operator would, and gives the checker the
/// bounds that the session derives from the rules.
void draw_rules(RedrawnScenario& s) {
  bounds::Rules& rules = s.config.gather.rules;
  std::vector<api::BucketBounds>& buckets = s.base.tolerance.buckets;
  for (api::BucketBounds& bucket : buckets) {
    for (api::BoundedTensor& tensor : bucket.tensors) {
      tensor.name = "bucket" + std::to_string(bucket.bucket) + "." + tensor.name;
      rules.patterns.push_back({tensor.name, tensor.bound});
    }
  }
  if (const session::BoundsResolver resolve = daemon::resolver_of(s.config))
    buckets = resolve(buckets).tables;
}

/// Makes ranks absent, so that rounds close without them: they are slow, or cut off for so short
/// that no node suspects them.
void draw_absences(Dice& dice, RedrawnScenario& s) {
  s.base.tolerance.absent_after = dice.between(Duration::ms(15), Duration::ms(100));
  s.config.gather.absent_after = s.base.tolerance.absent_after;
  const auto& members = s.base.plan.members;
  const api::Member& member = members[dice.below(members.size())];
  if (dice.coin()) {
    s.base.compute_max_of_rank.assign(members.back().ranks.back() + 1u, s.base.compute_max);
    s.base.compute_max_of_rank[member.ranks.front()] = Duration::ms(90);
    return;
  }
  for (Instant at; at < Instant() + kCutsWithin;) {
    at = at + dice.between(kCutsWithin / 10, kCutsWithin / 2);
    HostFault& cut = s.base.link.host_faults.emplace_back();
    cut.host = member.node;
    cut.cut_from = at;
    cut.cut_until = at + dice.between(Duration::ms(50), kLongestCut);
  }
}

/// Draws rounds of buckets with loss bounds, and a network that loses packets.
void draw_bounds(Dice& dice, RedrawnScenario& s) {
  Scenario& base = s.base;
  base.tolerance.layout = Coding::Layout::kSpread;
  base.tolerance.session_brings_tables = true;
  base.rounds.clear();
  draw_buckets(dice, base, kSize);
  draw_rounds(dice, base, kSize);
  draw_rules(s);
  config::GatherConfig& gather = s.config.gather;
  gather.compensation = base.tolerance.compensation;
  gather.floor_ppm = static_cast<std::uint32_t>(std::lround(base.tolerance.floor * 1e6));
  gather.strict_rounds = base.tolerance.strict_rounds;
  gather.slack = base.tolerance.slack;
  if (dice.coin()) draw_absences(dice, s);
  base.link.loss = dice.coin() ? 0.03 : dice.maybe(0.1);
  // Bursts are short, because a link with heartbeats alone must not be silent for a suspicion.
  if (dice.below(3) == 0) base.link.bursts = Bursts{.enter = 0.01, .leave = 0.4, .loss = 0.8};
}

}  // namespace

RedrawnScenario random_redrawn_scenario(std::uint64_t seed) {
  Dice dice(seed);
  RedrawnScenario s;
  s.base.seed = seed;
  const std::size_t pure = 1 + dice.below(kMostPure);
  const std::size_t relays = dice.below(kMostRelays + 1);
  const std::size_t workers = 2 + dice.below(kMostWorkers - 1);
  const std::size_t nodes = pure + relays + workers;
  std::uint16_t rank = 0;
  for (std::size_t n = pure + relays; n < nodes; ++n) {
    api::Member& member = s.base.plan.members.emplace_back();
    member.node = static_cast<api::NodeId>(n);
    for (std::uint64_t r = 1 + dice.below(kMostRanks); r > 0; --r) member.ranks.push_back(rank++);
  }
  s.base.block_bytes = kBlockAlignBytes * (8 + dice.below(15));
  s.base.round_bytes = 16 << 10;
  const auto most = static_cast<std::uint32_t>(s.base.round_bytes / sizeof(float));
  for (std::uint64_t n = 300 + dice.below(300); n > 0; --n) {
    const bool is_small = dice.below(4) == 0;
    const auto elements = static_cast<std::uint32_t>(is_small ? 1 + dice.below(most) : most);
    s.base.rounds.push_back({ElementType::kFloat32, elements});
  }
  if (dice.below(3) == 0) mix_operations(s.base, seed);
  s.base.in_flight = kMaxInFlightRounds / 2 + dice.below(kMaxInFlightRounds / 2 + 1);
  s.base.compute_max = Duration::us(static_cast<std::int64_t>(dice.below(5'000)));
  const plan::Network file = draw_file(dice, nodes, seed);
  s.config.network.network = scaled(file);
  draw_links(dice, s.base, file);
  s.base.limit = Duration::seconds(600);
  draw_config(dice, s, pure, relays, nodes);
  draw_strikes(dice, s, seed);
  s.pace = {.planning_takes = dice.between(Duration::ms(1), Duration::ms(200)),
            .links_every = Duration::ms(250)};
  s.longest_pause = kSuspectAfter * kPauseInSuspicions;
  // Separate random generators, so that other scenarios stay the same.
  if (Dice more(seed + 3); more.coin()) draw_bounds(more, s);
  if (Dice more(seed + 4); relays > 0 && more.coin()) {
    s.late = static_cast<api::NodeId>(pure + more.below(relays));
    s.late_by = more.between(Duration::ms(100), Duration::seconds(4));
  }
  return s;
}

}  // namespace gradplane::sim
