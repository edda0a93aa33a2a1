// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/api/plan.h"
#include "dataplane/base/result.h"

/// Who sums what where. Planners are pure: the same request gives the same plan, whatever the order
/// in which members, candidates and rates are listed. Every plan that they give passes validate().
namespace gradplane::plan {

/// The configured or measured rate of a node's link to the network.
struct LinkRate {
  api::NodeId node = api::kNoNode;
  std::uint64_t bits_per_s = 0;
};

/// A tree as somebody wrote it down: who sends to whom. Who is in none of the pairs is not in it.
struct ManualTree {
  std::uint32_t weight = 1;
  api::NodeId root = api::kNoNode;
  struct Edge {
    api::NodeId node = api::kNoNode;
    api::NodeId parent = api::kNoNode;
  };
  std::vector<Edge> edges;
};

/// What a planner knows.
struct PlanRequest {
  std::uint32_t epoch = 0;
  std::uint32_t activation_round = 0;
  /// The nodes that host ranks.
  std::vector<api::Member> members;
  PlanKind planner = PlanKind::kStar;
  /// Nodes that may be roots, whether they host ranks or not. None: every node that hosts ranks.
  std::vector<api::NodeId> root_candidates;
  /// A node without a rate counts as slow as the slowest that has one; without any, all are equal.
  std::vector<LinkRate> link_rates;
  /// Of a manual plan.
  std::vector<ManualTree> trees = {};
  /// For messages to people, by node; a node beyond is called by its number.
  std::vector<std::string> node_names = {};
};

/// The plan of the requested kind. Fails, saying why, when the members make no job.
Result<api::Plan> make_plan(const PlanRequest& request);

/// One tree. Its root is the candidate with the fastest link; of equal ones, the lowest node.
Result<api::Plan> plan_star(const PlanRequest& request);

/// One tree for each candidate (the kMaxTrees fastest), weighted by its link rate to a thousandth
/// of the fastest.
Result<api::Plan> plan_sharded(const PlanRequest& request);

/// The given trees, without the nodes that have no rank of this job on them or below them. Fails
/// where a tree leaves out a node with ranks or is no tree.
Result<api::Plan> plan_manual(const PlanRequest& request);

}  // namespace gradplane::plan
