// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/large_plans.h"

#include <algorithm>
#include <vector>

namespace gradplane::sim {
namespace {

constexpr std::uint64_t kFewestNodes = 20;
constexpr std::uint64_t kMostNodes = 200;
constexpr std::uint64_t kMostTrees = 3;
constexpr std::uint32_t kMaxHeight = 5;

/// All nodes in random order.
std::vector<api::NodeId> shuffled(Dice& dice, std::size_t nodes) {
  std::vector<api::NodeId> order(nodes);
  for (std::uint16_t n = 0; n < nodes; ++n) order[n] = n;
  for (std::size_t n = nodes - 1; n > 0; --n) std::swap(order[n], order[dice.below(n + 1)]);
  return order;
}

/// The shape of a tree: chooses the parent of the n-th node in random order. The parent is one of
/// few relays, or the node above it in a tree of even fan-out, or any node before it, or one of the
/// last four.
class Shape {
 public:
  Shape(Dice& dice, std::size_t nodes) : kind_(dice.below(4)) {
    width_ = kind_ == 0 ? 1 + dice.below(12) : 2 + dice.below(nodes / 4);
    if (kind_ == 1) width_ = std::max<std::uint64_t>(width_, 3);  // 3^5 > 200
  }
  std::size_t parent_of(Dice& dice, std::size_t n) const {
    switch (kind_) {
      case 0:  // a root, relays below it, and all other nodes below the relays
        return n <= width_ ? 0 : 1 + dice.below(width_);
      case 1:
        return (n - 1) / width_;
      case 2:
        return dice.below(n);
      default:  // one of the last four, for high trees
        return n - 1 - dice.below(std::min<std::uint64_t>(n, 4));
    }
  }

 private:
  std::uint64_t kind_;
  std::uint64_t width_ = 1;
};

/// Takes members without ranks and children out of the tree, as validate() requires.
void drop_idle_leaves(const api::Plan& plan, const std::vector<api::NodeId>& order,
                      api::Tree& tree) {
  std::vector<std::uint32_t> children(plan.members.size());
  for (const api::NodeId parent : tree.parent) {
    if (parent != api::kNoNode) ++children[parent];
  }
  for (std::size_t n = order.size() - 1; n > 0; --n) {
    api::NodeId& parent = tree.parent[order[n]];
    if (children[order[n]] > 0 || !plan.members[order[n]].ranks.empty()) continue;
    --children[parent];
    parent = api::kNoNode;
  }
}

api::Tree draw_tree(Dice& dice, const api::Plan& plan) {
  const std::size_t nodes = plan.members.size();
  const std::vector<api::NodeId> order = shuffled(dice, nodes);
  api::Tree tree{.weight = static_cast<std::uint32_t>(1 + dice.below(3)),
                 .root = order[0],
                 .parent = std::vector<api::NodeId>(nodes, api::kNoNode)};
  const Shape shape(dice, nodes);
  std::vector<std::uint32_t> depth(nodes);  // by index into the random order
  for (std::size_t n = 1; n < nodes; ++n) {
    std::size_t above = shape.parent_of(dice, n);
    while (depth[above] == kMaxHeight) above = dice.below(above);
    depth[n] = depth[above] + 1;
    tree.parent[order[n]] = order[above];
  }
  drop_idle_leaves(plan, order, tree);
  return tree;
}

}  // namespace

api::Plan draw_large_plan(Dice& dice) {
  const std::uint64_t most = dice.coin() ? kMostNodes : kMostNodes / 3;
  const auto nodes = static_cast<std::uint16_t>(kFewestNodes + dice.below(most - kFewestNodes + 1));
  const bool has_aggregators = dice.coin();
  api::Plan plan{.epoch = 11, .activation_round = 0, .members = {}, .trees = {}};
  std::uint16_t rank = 0;
  for (std::uint16_t n = 0; n < nodes; ++n) {
    api::Member member{.node = n, .ranks = {}};
    if (n < 2 || !has_aggregators || dice.below(4) != 0) member.ranks.push_back(rank++);
    if (!member.ranks.empty() && nodes < 100 && dice.below(8) == 0) member.ranks.push_back(rank++);
    plan.members.push_back(member);
  }
  for (std::uint64_t t = 1 + dice.below(kMostTrees); t > 0; --t) {
    plan.trees.push_back(draw_tree(dice, plan));
  }
  if (dice.below(4) == 0) plan.activation_round = 0U - static_cast<std::uint32_t>(dice.below(20));
  return plan;
}

}  // namespace gradplane::sim
