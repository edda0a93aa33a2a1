// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/model/plan_kind.h"

namespace gradplane::api {

/// A node's index in the cluster's node list. The same everywhere, because the list is.
using NodeId = std::uint16_t;
inline constexpr NodeId kNoNode = 0xffff;

/// One tree of a plan: who sends to whom for one share of the blocks.
struct Tree {
  /// Relative share of the blocks of every round; > 0.
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
/// the nodes of `via` instead of straight. These relay them and sum nothing.
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
  /// Per member (same order as Plan::members): the nodes that receive what it sends, ascending.
  std::vector<std::vector<NodeId>> receivers;
  bool operator==(const Selection&) const = default;
};

/// Who sums what where, for one job, from `activation_round` on. Computed by a planner, checked by
/// validate() before it is used, never changed afterwards. A change is a new epoch. The plan of a
/// job that runs already has no activation round until it is committed.
struct Plan {
  std::uint32_t epoch = 0;
  std::uint32_t activation_round = 0;
  std::vector<Member> members;
  std::vector<Tree> trees;
  PlanKind kind = PlanKind::kStar;
  /// Those of one pair of nodes in the order in which they are to be tried.
  std::vector<Route> routes = {};
  std::vector<Sounding> soundings = {};
  /// At most kMaxSelections. The exchanges of a step name one of them; none: it carries no
  /// exchanges. With any, each member hosts one rank and is the root of one tree, and all others
  /// are its children there: a tree sums for its root what the others send to it.
  std::vector<Selection> selections = {};
};

}  // namespace gradplane::api
