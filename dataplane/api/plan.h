// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/model/plan_kind.h"

namespace gradplane::api {

/// A node's index in the cluster's node list. It is the same at every node, because the list is.
using NodeId = std::uint16_t;
inline constexpr NodeId kNoNode = 0xffff;

/// One tree of a plan: who sends to whom for one share of the blocks.
struct Tree {
  /// The tree's share of the blocks of every round, relative to other trees; > 0.
  std::uint32_t weight = 1;
  NodeId root = kNoNode;
  /// Per member (same order as Plan::members): the node it sends its sums to; kNoNode at the root
  /// and at members that are not in this tree.
  std::vector<NodeId> parent;
  bool operator==(const Tree&) const = default;
};

/// A node that takes part in a job, with the ranks that it hosts (none: it only sums).
struct Member {
  NodeId node = kNoNode;
  std::vector<std::uint16_t> ranks;
  bool operator==(const Member&) const = default;
};

/// An auxiliary route: blocks that `from` sends to `to`, its neighbour in some tree, may go over
/// the nodes of `via` instead of directly. These relay the blocks and sum nothing.
struct Route {
  NodeId from = kNoNode;
  NodeId to = kNoNode;
  std::vector<NodeId> via;
  bool operator==(const Route&) const = default;
};

/// A link that no tree uses: `from` sends soundings to `to` now and then, so that its rate is
/// known.
struct Sounding {
  NodeId from = kNoNode;
  NodeId to = kNoNode;
  auto operator<=>(const Sounding&) const = default;
};

/// Who receives the update of each rank in an exchange.
struct Selection {
  /// Per member (same order as Plan::members): the nodes that receive its update, ascending.
  std::vector<std::vector<NodeId>> receivers;
  bool operator==(const Selection&) const = default;
};

/// The trees of one job from `activation_round` on, and their shares of the blocks. A planner makes
/// a plan, and validate() checks it before use. It never changes: a change is a new plan with a new
/// epoch. A further plan of a running job has no activation round until it is committed.
struct Plan {
  std::uint32_t epoch = 0;
  std::uint32_t activation_round = 0;
  std::vector<Member> members;
  std::vector<Tree> trees;
  PlanKind kind = PlanKind::kStar;
  /// Routes between the same two nodes are in the order in which they are tried.
  std::vector<Route> routes = {};
  std::vector<Sounding> soundings = {};
  /// At most kMaxSelections; the exchanges of a step name one of them. If it is empty, the plan
  /// carries no exchanges. Otherwise each member hosts one rank and is the root of one tree, in
  /// which all others are its children: the tree sums for its root what the others send to it.
  std::vector<Selection> selections = {};
};

}  // namespace gradplane::api
