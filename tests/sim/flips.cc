// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Scenarios in which a job changes from plan to plan.
#include <algorithm>

#include "tests/sim/cluster.h"
#include "tests/sim/dice.h"

namespace gradplane::sim {
namespace {

constexpr std::uint16_t kHosts = 6;
constexpr std::uint32_t kMaxElements = 4096;

/// A tree with at most two levels below the root. Every host is the child of an earlier one.
api::Tree random_tree(Dice& dice) {
  std::vector<api::NodeId> order(kHosts);
  for (std::uint16_t n = 0; n < kHosts; ++n) order[n] = n;
  for (std::size_t n = kHosts - 1u; n > 0; --n) std::swap(order[n], order[dice.below(n + 1)]);
  api::Tree tree{.weight = static_cast<std::uint32_t>(1 + dice.below(4)),
                 .root = order[0],
                 .parent = std::vector<api::NodeId>(kHosts, api::kNoNode)};
  const std::size_t relays = 1 + dice.below(2);
  for (std::size_t n = 1; n < kHosts; ++n) {
    tree.parent[order[n]] = n <= relays ? order[0] : order[1 + dice.below(relays)];
  }
  return tree;
}

/// A star, a sharded plan, or trees with relays, over the same members.
api::Plan random_plan(Dice& dice, std::uint32_t epoch) {
  api::Plan plan = sharded(kHosts);
  plan.epoch = epoch;
  switch (dice.below(3)) {
    case 0:
      plan.trees = {plan.trees[dice.below(kHosts)]};
      break;
    case 1:
      break;
    default:
      plan.trees.clear();
      for (std::uint64_t t = 1 + dice.below(3); t > 0; --t) plan.trees.push_back(random_tree(dice));
  }
  return plan;
}

}  // namespace

Scenario flip_scenario(std::uint64_t seed, std::uint32_t rounds) {
  Dice dice(seed);
  Scenario s;
  s.seed = seed;
  s.link.bits_per_second = 1'000'000'000;
  s.link.queue_bytes = 512 << 10;
  s.link.delay = Duration::us(50);
  s.link.jitter = Duration::us(dice.coin() ? 0 : 100);
  s.link.loss = dice.maybe(0.01);
  s.link.duplication = dice.maybe(0.01);
  s.round_bytes = kMaxElements * sizeof(float);
  s.plan = random_plan(dice, 1);
  s.plan.activation_round = dice.coin() ? 0 : 0U - rounds / 2;
  s.rounds.assign(rounds, {ElementType::kFloat32, kMaxElements});
  for (std::uint32_t epoch = 2; epoch * s.flip_every <= rounds; ++epoch) {
    s.flips.push_back(random_plan(dice, epoch));
  }
  s.in_flight = 1 + dice.below(kMaxInFlightRounds);
  s.compute_max = {};
  s.congestion = dice.congestion();
  s.grants = dice.coin();
  s.buffer_known = true;
  s.limit = Duration::ms(100) * rounds;
  // With slow rounds the next plan begins soon after its commit, and with slow messages nodes wait
  // for its end.
  if (dice.below(4) == 0) {
    s.compute_max = Duration::ms(20 + static_cast<std::int64_t>(dice.below(200)));
    s.flip_message_max = Duration::ms(1 + static_cast<std::int64_t>(dice.below(900)));
    s.limit = s.limit + s.compute_max * rounds;
  }
  return s;
}

}  // namespace gradplane::sim
