// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/validate.h"

#include <string>
#include <vector>

#include "control/plan/selections.h"
#include "control/plan/soundings.h"
#include "control/plan/validate_routes.h"
#include "dataplane/model/limits.h"

namespace gradplane::plan {
namespace {

static_assert(kMaxNodes <= api::kNoNode, "kNoNode is no node");

constexpr std::size_t kNoMember = ~std::size_t{0};

std::string node_name(api::NodeId node) {
  return "node " + std::to_string(node);
}

Error count_error(const char* what, std::size_t count, std::size_t max) {
  return Error{"a plan with " + std::to_string(count) + " " + what + "; it may have 1 to " +
               std::to_string(max)};
}

/// The index of each node in the members; kNoMember if it is none.
using MemberIndex = std::vector<std::size_t>;

Status index_members(const api::Plan& plan, MemberIndex& index_of) {
  index_of.assign(kMaxNodes, kNoMember);
  for (std::size_t i = 0; i < plan.members.size(); ++i) {
    const api::NodeId node = plan.members[i].node;
    if (node >= kMaxNodes) return Error{"member " + std::to_string(i) + " is no node"};
    if (index_of[node] != kNoMember) return Error{node_name(node) + " is a member twice"};
    index_of[node] = i;
  }
  return Nothing{};
}

Status check_ranks(const api::Plan& plan) {
  std::size_t world_size = 0;
  for (const api::Member& member : plan.members) {
    if (member.ranks.size() > kMaxLocalRanks) {
      return Error{node_name(member.node) + " hosts " + std::to_string(member.ranks.size()) +
                   " ranks; a node may host " + std::to_string(kMaxLocalRanks)};
    }
    world_size += member.ranks.size();
  }
  if (world_size == 0 || world_size > kMaxRanks) return count_error("ranks", world_size, kMaxRanks);
  // A plan may lack some ranks of its job, so the numbers may have gaps.
  std::vector<bool> hosted(kMaxRanks, false);
  for (const api::Member& member : plan.members) {
    for (const std::uint16_t rank : member.ranks) {
      if (rank >= kMaxRanks) {
        return Error{node_name(member.node) + " hosts rank " + std::to_string(rank) +
                     "; the last one is " + std::to_string(kMaxRanks - 1)};
      }
      if (hosted[rank]) return Error{"rank " + std::to_string(rank) + " is hosted twice"};
      hosted[rank] = true;
    }
  }
  return Nothing{};
}

/// Checks one tree. It works with indexes of members instead of nodes.
class TreeCheck {
 public:
  TreeCheck(const api::Plan& plan, std::size_t tree_index, const MemberIndex& index_of)
      : plan_(plan), tree_(plan.trees[tree_index]), tree_index_(tree_index), index_of_(index_of) {}

  Status run() {
    if (tree_.weight == 0) return error("has no weight");
    if (tree_.parent.size() != plan_.members.size()) {
      return error("has " + std::to_string(tree_.parent.size()) + " parents for " +
                   std::to_string(plan_.members.size()) + " members");
    }
    root_ = member_of(tree_.root);
    if (root_ == kNoMember) return error("has a root that is no member");
    if (tree_.parent[root_] != api::kNoNode) return error("has a root with a parent");
    if (Status status = check_parents(); !status.ok()) return status;
    if (Status status = check_leaves(); !status.ok()) return status;
    return check_ways_to_root();
  }

 private:
  std::size_t member_of(api::NodeId node) const {
    return node < kMaxNodes ? index_of_[node] : kNoMember;
  }
  Error error(const std::string& what) const {
    return Error{"tree " + std::to_string(tree_index_) + " " + what};
  }
  std::string name(std::size_t member) const { return node_name(plan_.members[member].node); }

  Status check_parents() {
    parent_.assign(plan_.members.size(), kNoMember);
    for (std::size_t i = 0; i < plan_.members.size(); ++i) {
      if (i == root_) continue;
      if (tree_.parent[i] == api::kNoNode) {
        if (!plan_.members[i].ranks.empty())
          return error("leaves out " + name(i) + " and its ranks");
        continue;
      }
      parent_[i] = member_of(tree_.parent[i]);
      if (parent_[i] == kNoMember)
        return error("has a parent of " + name(i) + " that is no member");
    }
    return Nothing{};
  }

  /// A leaf without ranks would never send, and its parent would wait for it for ever.
  Status check_leaves() const {
    std::vector<bool> has_child(plan_.members.size(), false);
    for (const std::size_t parent : parent_) {
      if (parent != kNoMember) has_child[parent] = true;
    }
    for (std::size_t i = 0; i < parent_.size(); ++i) {
      const bool silent = plan_.members[i].ranks.empty() && !has_child[i];
      if (silent && parent_[i] != kNoMember)
        return error("waits for " + name(i) + ", which has nothing to send");
    }
    return Nothing{};
  }

  /// Checks that the parents of each member lead to the root. It walks over each member once.
  Status check_ways_to_root() const {
    std::vector<std::size_t> walked_by(plan_.members.size(), kNoMember);
    walked_by[root_] = root_;
    for (std::size_t i = 0; i < parent_.size(); ++i) {
      if (parent_[i] == kNoMember) continue;
      std::size_t at = i;
      while (at != kNoMember && walked_by[at] == kNoMember) {
        walked_by[at] = i;
        at = parent_[at];
      }
      if (at == kNoMember) return error("ends above " + name(i) + " before its root");
      if (at != root_ && walked_by[at] == i) return error("goes round in a circle at " + name(i));
    }
    return Nothing{};
  }

  const api::Plan& plan_;
  const api::Tree& tree_;
  std::size_t tree_index_;
  const MemberIndex& index_of_;
  std::size_t root_ = kNoMember;
  std::vector<std::size_t> parent_;
};

}  // namespace

Status validate(const api::Plan& plan) {
  if (plan.members.empty() || plan.members.size() > kMaxNodes) {
    return count_error("members", plan.members.size(), kMaxNodes);
  }
  if (plan.trees.empty() || plan.trees.size() > kMaxTrees) {
    return count_error("trees", plan.trees.size(), kMaxTrees);
  }
  MemberIndex index_of;
  if (Status status = index_members(plan, index_of); !status.ok()) return status;
  if (Status status = check_ranks(plan); !status.ok()) return status;
  for (std::size_t i = 0; i < plan.trees.size(); ++i) {
    if (Status status = TreeCheck(plan, i, index_of).run(); !status.ok()) return status;
  }
  if (Status status = validate_routes(plan); !status.ok()) return status;
  if (Status status = validate_selections(plan); !status.ok()) return status;
  return validate_soundings(plan);
}

}  // namespace gradplane::plan
