// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <map>
#include <numeric>

#include "tests/sim/cluster.h"
#include "tests/sim/dice.h"

namespace gradplane::sim {

std::vector<api::Member> members(std::uint16_t aggregators, std::uint16_t workers) {
  std::vector<api::Member> out;
  for (std::uint16_t n = 0; n < aggregators; ++n) out.push_back({.node = n, .ranks = {}});
  for (std::uint16_t w = 0; w < workers; ++w) {
    out.push_back({.node = static_cast<api::NodeId>(aggregators + w), .ranks = {w}});
  }
  return out;
}

api::Plan star(std::uint16_t workers) {
  api::Plan plan{.epoch = 7, .activation_round = 0, .members = members(1, workers), .trees = {}};
  api::Tree tree{.weight = 1, .root = 0, .parent = {api::kNoNode}};
  tree.parent.resize(plan.members.size(), 0);
  plan.trees.push_back(tree);
  return plan;
}

api::Plan sharded(std::uint16_t workers) {
  std::vector<api::NodeId> nodes(workers);
  std::iota(nodes.begin(), nodes.end(), api::NodeId{0});
  return sharded_over(nodes);
}

api::Plan sharded_over(const std::vector<api::NodeId>& nodes) {
  api::Plan plan{.epoch = 9, .activation_round = 0, .members = {}, .trees = {}};
  for (const api::NodeId node : nodes) plan.members.push_back({.node = node, .ranks = {node}});
  for (const api::NodeId root : nodes) {
    api::Tree tree{.weight = 1, .root = root, .parent = {}};
    for (const api::NodeId node : nodes) tree.parent.push_back(node == root ? api::kNoNode : root);
    plan.trees.push_back(tree);
  }
  return plan;
}

std::vector<api::Member> everybody(const Scenario& scenario) {
  std::map<api::NodeId, api::Member> all;
  for (const api::Member& member : scenario.plan.members) all.emplace(member.node, member);
  for (const api::Plan& plan : scenario.flips) {
    for (const api::Member& member : plan.members) all.emplace(member.node, member);
  }
  std::vector<api::Member> in_order;
  for (const auto& [node, member] : all) in_order.push_back(member);
  return in_order;
}

const api::Member* member_of(const api::Plan& plan, api::NodeId node) {
  const auto is_it = [node](const api::Member& member) { return member.node == node; };
  const auto at = std::find_if(plan.members.begin(), plan.members.end(), is_it);
  return at == plan.members.end() ? nullptr : &*at;
}

const api::Member* member_with(const api::Plan& plan, std::uint32_t rank) {
  const auto has_it = [rank](const api::Member& member) {
    return std::count(member.ranks.begin(), member.ranks.end(), rank) > 0;
  };
  const auto at = std::find_if(plan.members.begin(), plan.members.end(), has_it);
  return at == plan.members.end() ? nullptr : &*at;
}

std::vector<std::uint32_t> ranks_of(const api::Plan& plan) {
  std::vector<std::uint32_t> ranks;
  for (const api::Member& member : plan.members)
    ranks.insert(ranks.end(), member.ranks.begin(), member.ranks.end());
  return ranks;
}

api::Plan with_selections(
    api::Plan plan, std::size_t selections,
    const std::function<bool(std::size_t, std::size_t, std::size_t)>& receives) {
  for (std::size_t s = 0; s < selections; ++s) {
    api::Selection& selection = plan.selections.emplace_back();
    for (std::size_t from = 0; from < plan.members.size(); ++from) {
      std::vector<api::NodeId>& receivers = selection.receivers.emplace_back();
      for (std::size_t to = 0; to < plan.members.size(); ++to) {
        if (from != to && receives(s, from, to)) receivers.push_back(plan.members[to].node);
      }
    }
  }
  return plan;
}

api::Plan two_level_tree(std::uint16_t relays, std::uint16_t workers_per_relay) {
  const auto workers = static_cast<std::uint16_t>(relays * workers_per_relay);
  const auto above = static_cast<std::uint16_t>(1 + relays);
  api::Plan plan{
      .epoch = 3, .activation_round = 0, .members = members(above, workers), .trees = {}};
  api::Tree tree{.weight = 1, .root = 0, .parent = {api::kNoNode}};
  for (std::uint16_t r = 0; r < relays; ++r) tree.parent.push_back(0);
  for (std::uint16_t w = 0; w < workers; ++w) {
    tree.parent.push_back(static_cast<api::NodeId>(1 + w / workers_per_relay));
  }
  plan.trees.push_back(tree);
  return plan;
}

namespace {

/// Trees of random shape over the same members. Every member is in each tree.
api::Plan random_forest(Dice& dice) {
  const auto hosts = static_cast<std::uint16_t>(2 + dice.below(7));
  api::Plan plan{.epoch = 11, .activation_round = 0, .members = {}, .trees = {}};
  std::uint16_t rank = 0;
  for (std::uint16_t n = 0; n < hosts; ++n) {
    api::Member member{.node = n, .ranks = {}};
    for (std::uint64_t r = 1 + dice.below(3); r > 0; --r) member.ranks.push_back(rank++);
    plan.members.push_back(member);
  }
  for (std::uint64_t t = 1 + dice.below(4); t > 0; --t) {
    std::vector<api::NodeId> order(hosts);
    for (std::uint16_t n = 0; n < hosts; ++n) order[n] = n;
    for (std::size_t n = hosts - 1u; n > 0; --n) std::swap(order[n], order[dice.below(n + 1)]);
    api::Tree tree{.weight = static_cast<std::uint32_t>(1 + dice.below(5)),
                   .root = order[0],
                   .parent = std::vector<api::NodeId>(hosts, api::kNoNode)};
    for (std::size_t n = 1; n < hosts; ++n) tree.parent[order[n]] = order[dice.below(n)];
    plan.trees.push_back(tree);
  }
  return plan;
}

/// Operations besides all_reduce. Exchanges need a plan with selections: exchange_scenario().
constexpr std::uint64_t kMixedOperations = 3;
static_assert(2 + kMixedOperations == static_cast<std::uint64_t>(Operation::kExchange));
constexpr std::uint64_t kMixedShare = 3;  // one of so many exact scenarios mixes operations

/// The most elements of a round with shards of equal size; 0 if no shard fits.
std::uint32_t whole_shards(const Scenario& s, const RoundPlan& round, std::uint32_t ranks) {
  const std::size_t width = element_bytes(round.type);
  const std::size_t max_blocks = (s.round_bytes + s.block_bytes - 1) / s.block_bytes;
  const std::size_t most = max_blocks / ranks * (s.block_bytes / width);
  const std::size_t fitting = std::min(most, s.round_bytes / width / ranks);
  const std::size_t shard = std::min(std::max<std::size_t>(round.elements / ranks, 1), fitting);
  return static_cast<std::uint32_t>(shard * ranks);
}

}  // namespace

void mix_operations(Scenario& s, std::uint64_t seed) {
  Dice dice(seed);
  std::uint32_t ranks = 0;
  for (const api::Member& member : s.plan.members) {
    ranks += static_cast<std::uint32_t>(member.ranks.size());
  }
  for (RoundPlan& round : s.rounds) {
    if (dice.coin() || round.bucket != 0) continue;
    const auto operation = static_cast<Operation>(2 + dice.below(kMixedOperations));
    const std::uint32_t elements =
        has_shards(operation) ? whole_shards(s, round, ranks) : round.elements;
    if (elements == 0) continue;
    round.operation = operation;
    round.elements = elements;
    const bool has_source = round.operation == Operation::kBroadcast;
    round.source = static_cast<std::uint16_t>(has_source ? dice.below(ranks) : 0);
  }
  for (RoundPlan& round : s.rounds) {
    const bool reduces = all_contribute(round.operation) && round.operation != Operation::kExchange;
    if (!reduces || round.bucket != 0 || dice.coin()) continue;
    round.reduction = static_cast<Reduction>(dice.below(kReductions.size()));
  }
}

Scenario random_scenario(std::uint64_t seed) {
  Dice dice(seed);
  Scenario s;
  s.seed = seed;
  s.link.bits_per_second = dice.coin() ? 0 : 100'000'000 * (1 + dice.below(100));
  s.link.queue_bytes = 16'000 + dice.below(1 << 20);
  s.link.delay = Duration::us(static_cast<std::int64_t>(1 + dice.below(2000)));
  s.link.jitter = Duration::us(dice.coin() ? 0 : static_cast<std::int64_t>(1 + dice.below(1000)));
  s.link.loss = dice.maybe(0.1);
  s.link.duplication = dice.maybe(0.1);
  s.link.corruption = dice.maybe(0.01);
  switch (dice.below(4)) {
    case 0:
      s.plan = star(static_cast<std::uint16_t>(2 + dice.below(8)));
      break;
    case 1:
      s.plan = sharded(static_cast<std::uint16_t>(2 + dice.below(7)));
      break;
    case 2:
      s.plan = two_level_tree(static_cast<std::uint16_t>(1 + dice.below(3)),
                              static_cast<std::uint16_t>(1 + dice.below(3)));
      break;
    default:
      s.plan = random_forest(dice);
  }
  s.block_bytes = kBlockAlignBytes * (8 + dice.below(16));
  for (std::uint64_t n = 1 + dice.below(24); n > 0; --n) {
    const ElementType type = kElementTypes[dice.below(kElementTypes.size())];
    const std::uint64_t most = s.round_bytes / element_bytes(type);
    const std::uint64_t elements = dice.coin() ? 1 + dice.below(64) : 1 + dice.below(most);
    s.rounds.push_back({type, static_cast<std::uint32_t>(elements)});
  }
  s.in_flight = 1 + dice.below(kMaxInFlightRounds);
  s.compute_max = Duration::us(static_cast<std::int64_t>(dice.below(5000)));
  s.paced = dice.coin();
  s.congestion = dice.congestion();
  if (dice.coin()) s.link.mark_bytes = s.link.queue_bytes / 4;
  s.grants = dice.coin();
  s.buffer_known = dice.coin();
  s.forward_order = dice.coin();
  if (dice.below(kMixedShare) == 0) mix_operations(s, seed);
  return s;
}

}  // namespace gradplane::sim
