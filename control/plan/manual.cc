// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "control/plan/planner.h"
#include "control/plan/validate.h"

namespace gradplane::plan {
namespace {

/// Walks one tree of the request and finds the nodes that it needs.
class TreeWalk {
 public:
  TreeWalk(const PlanRequest& request, std::size_t index, const std::set<api::NodeId>& training)
      : request_(request),
        tree_(request.trees[index]),
        what_("tree " + std::to_string(index)),
        training_(training) {}

  /// Checks the edges, and finds the nodes on the ways from nodes with ranks to the root.
  Status run() {
    for (const ManualTree::Edge& edge : tree_.edges) {
      if (edge.node == tree_.root) return error("gives its root " + name(edge.node) + " a parent");
      if (!parent_.emplace(edge.node, edge.parent).second)
        return error("gives " + name(edge.node) + " two parents");
    }
    needed_.insert(tree_.root);
    for (const api::NodeId node : training_) {
      if (Status status = walk_up(node); !status.ok()) return status;
    }
    return Nothing{};
  }

  /// The root, the nodes with ranks, and the relays between them.
  const std::set<api::NodeId>& needed() const { return needed_; }
  api::NodeId parent_of(api::NodeId node) const {
    const auto found = needed_.contains(node) ? parent_.find(node) : parent_.end();
    return found == parent_.end() ? api::kNoNode : found->second;
  }

 private:
  Status walk_up(api::NodeId from) {
    api::NodeId at = from;
    for (std::size_t steps = 0; at != tree_.root; ++steps) {
      const auto up = parent_.find(at);
      if (up == parent_.end() && at == from)
        return error("has no parent for " + name(from) + ", which hosts ranks of the job");
      if (up == parent_.end())
        return error("has no parent for " + name(at) + ", above " + name(from));
      if (steps == parent_.size()) return error("goes round in a circle above " + name(from));
      needed_.insert(at);
      at = up->second;
    }
    return Nothing{};
  }

  std::string name(api::NodeId node) const { return node_text(request_, node); }
  Error error(const std::string& text) const { return Error{what_ + " " + text}; }

  const PlanRequest& request_;
  const ManualTree& tree_;
  std::string what_;
  const std::set<api::NodeId>& training_;
  std::map<api::NodeId, api::NodeId> parent_;
  std::set<api::NodeId> needed_;
};

}  // namespace

Result<api::Plan> plan_manual(const PlanRequest& request) {
  if (request.trees.empty()) return Error{"no trees are given"};
  std::map<api::NodeId, api::Member> members;
  std::set<api::NodeId> training;
  for (const api::Member& member : request.members) {
    if (member.ranks.empty()) continue;
    members[member.node] = member;
    std::sort(members[member.node].ranks.begin(), members[member.node].ranks.end());
    training.insert(member.node);
  }
  if (training.empty()) return Error{"no node hosts a rank of the job; there is nothing to plan"};
  std::vector<TreeWalk> walks;
  for (std::size_t t = 0; t < request.trees.size(); ++t) {
    walks.emplace_back(request, t, training);
    if (Status status = walks.back().run(); !status.ok()) return status.error();
    for (const api::NodeId node : walks.back().needed()) members[node].node = node;
  }
  api::Plan plan{request.epoch, request.activation_round, {}, {}, PlanKind::kManual};
  for (auto& [node, member] : members) plan.members.push_back(std::move(member));
  for (std::size_t t = 0; t < walks.size(); ++t) {
    api::Tree& tree = plan.trees.emplace_back();
    tree.weight = request.trees[t].weight;
    tree.root = request.trees[t].root;
    for (const api::Member& member : plan.members)
      tree.parent.push_back(walks[t].parent_of(member.node));
  }
  if (Status status = validate(plan); !status.ok()) return status.error();
  return plan;
}

}  // namespace gradplane::plan
