// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Scenarios on networks of sites, with plans that planners make for them.
#include <algorithm>
#include <array>
#include <utility>

#include "control/plan/planner.h"
#include "tests/sim/cluster.h"
#include "tests/sim/dice.h"
#include "tests/sim/site_draws.h"

namespace gradplane::sim {
namespace {

constexpr std::uint64_t kMbit = 1'000'000;
constexpr std::uint64_t kLeastMbit = 20;
constexpr std::uint64_t kMostMbit = 200;
constexpr std::uint64_t kMaxRttMs = 40;
constexpr std::uint64_t kMaxLossPpm = 20'000;
constexpr std::uint64_t kMaxRedraws = 3;
/// Limit of the members of all trees together, because a plan of 200 nodes in 64 trees takes half a
/// minute.
constexpr std::size_t kMaxPlaces = 512;
/// Paths between sites are slower than a switch, so the time limit is so many times longer.
constexpr std::int64_t kLimitFactor = 4;

constexpr std::array kPlanners = {PlanKind::kFapt, PlanKind::kPacked, PlanKind::kAuto,
                                  PlanKind::kStar, PlanKind::kSharded};

std::uint64_t draw_rate(Dice& dice) {
  return (kLeastMbit + dice.below(kMostMbit - kLeastMbit + 1)) * kMbit;
}

void connect(Dice& dice, plan::Network& network, std::size_t a, std::size_t b) {
  const auto one = static_cast<plan::SiteId>(a);
  const auto other = static_cast<plan::SiteId>(b);
  const auto rtt = Duration::ms(static_cast<std::int64_t>(dice.below(kMaxRttMs + 1)));
  const bool lossy = dice.below(4) == 0;
  const auto loss = [&] { return static_cast<std::uint32_t>(lossy ? dice.below(kMaxLossPpm) : 0); };
  network.links.push_back({one, other, draw_rate(dice), rtt, loss()});
  network.links.push_back({other, one, draw_rate(dice), rtt, loss()});
}

}  // namespace

plan::Network draw_sites(Dice& dice, std::size_t nodes) {
  plan::Network network;
  const std::size_t count = 1 + dice.below(nodes);
  network.sites.resize(count);
  for (std::size_t n = 0; n < nodes; ++n) {
    const std::size_t site = n < count ? n : dice.below(count);
    network.nodes.push_back({.site = static_cast<plan::SiteId>(site), .access = {}});
    if (dice.below(4) != 0) continue;
    network.nodes.back().access.up_bits_per_s = draw_rate(dice);
    network.nodes.back().access.down_bits_per_s = draw_rate(dice);
  }
  if (dice.coin()) network.routing = plan::Routing::kFastest;
  if (dice.below(6) == 0) return network;
  const bool is_chain = dice.below(4) == 0;
  const std::uint64_t one_more_in = 1 + dice.below(6);
  for (std::size_t b = 1; b < count; ++b) {
    const std::size_t above = is_chain ? b - 1 : dice.below(b);
    connect(dice, network, above, b);
    for (std::size_t a = 0; a < b && !is_chain; ++a) {
      if (a != above && dice.below(one_more_in) == 0) connect(dice, network, a, b);
    }
  }
  return network;
}

plan::Network redraw_sites(Dice& dice, plan::Network network) {
  std::vector<std::size_t> links_at(network.sites.size());
  for (const plan::Link& link : network.links) ++links_at[link.from];
  for (plan::Link& link : network.links) {
    link.bits_per_s = draw_rate(dice);
    if (dice.below(8) != 0 || std::min(links_at[link.from], links_at[link.to]) < 2) continue;
    const std::uint64_t rate = std::exchange(link.bits_per_s, 0);
    plan::PlanRequest request;
    for (std::size_t n = 0; n < network.nodes.size(); ++n) {
      request.members.push_back({static_cast<api::NodeId>(n), {static_cast<std::uint16_t>(n)}});
    }
    request.planner = PlanKind::kSharded;  // needs a path from every node to every node
    request.network = network;
    if (!plan::make_predicted_plan(request).ok()) link.bits_per_s = rate;
  }
  return network;
}

namespace {

/// Puts a planner's trees over all members of a plan, because planners leave out members without a
/// part.
api::Plan over_members(const api::Plan& made, const api::Plan& asked) {
  api::Plan plan = asked;
  plan.trees = made.trees;
  for (api::Tree& tree : plan.trees) {
    const std::vector<api::NodeId> parents = std::exchange(tree.parent, {});
    for (const api::Member& member : plan.members) {
      const auto found = std::find_if(made.members.begin(), made.members.end(),
                                      [&](const auto& m) { return m.node == member.node; });
      const bool is_in = found != made.members.end();
      tree.parent.push_back(is_in ? parents[static_cast<std::size_t>(found - made.members.begin())]
                                  : api::kNoNode);
    }
  }
  return plan;
}

/// Replaces the plan's trees by a planner's trees over the same members.
void plan_anew(Dice& dice, const plan::Network& network, api::Plan& plan) {
  plan::PlanRequest request;
  request.planner = kPlanners[dice.below(kPlanners.size())];
  for (const api::Member& member : plan.members) {
    if (member.ranks.empty()) {
      request.summing.push_back(member.node);
    } else {
      request.members.push_back(member);
    }
  }
  request.network = network;
  const auto made = plan::make_plan(request);
  if (!made.ok()) return;
  plan = over_members(made.value(), plan);
  const std::size_t most = std::max<std::size_t>(kMaxPlaces / plan.members.size(), 1);
  plan.trees.resize(std::min(plan.trees.size(), most));
}

}  // namespace

void put_on_sites(Scenario& s) {
  Dice dice(s.seed + 1);
  plan::Network network = draw_sites(dice, s.plan.members.size());
  plan_anew(dice, network, s.plan);
  s.link.sites = {{{}, network}};
  Duration after;
  for (std::uint64_t n = dice.below(kMaxRedraws + 1); n > 0; --n) {
    after = after + dice.between(Duration::ms(5), Duration::ms(400));
    network = redraw_sites(dice, std::move(network));
    s.link.sites.push_back({Instant() + after, network});
  }
  for (api::Plan& flip : s.flips) plan_anew(dice, network, flip);
  s.link.bits_per_second = 0;
  s.limit = s.limit * kLimitFactor;
}

}  // namespace gradplane::sim
