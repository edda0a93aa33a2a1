// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Adds auxiliary routes and soundings to plans.
#include <algorithm>
#include <utility>

#include "control/plan/validate_routes.h"
#include "tests/sim/cluster.h"
#include "tests/sim/dice.h"

namespace gradplane::sim {
namespace {

/// Draws up to two routes for every second pair of neighbours. A node is in at most one route of a
/// pair.
void draw_routes(api::Plan& plan, Dice& dice) {
  for (const auto& [from, to] : plan::neighbours_in(plan)) {
    if (dice.coin()) continue;
    std::vector<api::NodeId> others;
    for (const api::Member& member : plan.members) {
      if (member.node != from && member.node != to) others.push_back(member.node);
    }
    for (std::size_t n = others.size(); n > 1; --n) {
      std::swap(others[n - 1], others[dice.below(n)]);
    }
    for (std::size_t r = 0; r < kMaxRoutes; ++r) {
      const std::size_t relays = std::min(others.size(), 1 + dice.below(kMaxRelays));
      if (relays == 0) break;
      const auto end = others.end() - static_cast<std::ptrdiff_t>(relays);
      plan.routes.push_back({.from = from, .to = to, .via = {end, others.end()}});
      others.erase(end, others.end());
    }
  }
}

/// Draws soundings between some members, also where trees of this or another plan connect them.
void draw_soundings(api::Plan& plan, Dice& dice) {
  for (const api::Member& from : plan.members) {
    const api::Member& to = plan.members[dice.below(plan.members.size())];
    if (from.node != to.node) plan.soundings.push_back({.from = from.node, .to = to.node});
  }
}

}  // namespace

void add_routes(Scenario& s) {
  // A separate random generator, so that the rest of the scenario is the same as without routes.
  Dice dice(s.seed ^ 0x726f757465);
  draw_routes(s.plan, dice);
  for (api::Plan& flip : s.flips) draw_routes(flip, dice);
  draw_soundings(s.plan, dice);
  for (api::Plan& flip : s.flips) draw_soundings(flip, dice);
  for (const auto& [from, to] : plan::neighbours_in(s.plan)) {
    if (dice.below(3) != 0) continue;
    s.link.pair_links.push_back({.from = from,
                                 .to = to,
                                 .bits_per_second = 5'000'000 * (1 + dice.below(10)),
                                 .queue_bytes = 16'000 + dice.below(1 << 16)});
  }
}

}  // namespace gradplane::sim
