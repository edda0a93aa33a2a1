// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Plans of jobs that several cores share, and the groups of plans.
#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <span>

#include "dataplane/base/siphash.h"
#include "dataplane/engine/local_plan.h"

namespace gradplane::engine {
namespace {

/// The place of a node among the members.
std::optional<std::size_t> place_of(const api::Plan& plan, api::NodeId node) {
  for (std::size_t m = 0; m < plan.members.size(); ++m) {
    if (plan.members[m].node == node) return m;
  }
  return std::nullopt;
}

}  // namespace

api::Plan split_trees(const api::Plan& plan, std::size_t cores) {
  api::Plan split = plan;
  split.trees.clear();
  const std::size_t copies =
      std::min(cores, kMaxTrees / std::max<std::size_t>(1, plan.trees.size()));
  for (const api::Tree& tree : plan.trees)
    split.trees.insert(split.trees.end(), std::max<std::size_t>(1, copies), tree);
  return split;
}

wire::Key key_of_part(const wire::Key& key, std::size_t part) {
  if (part == 0) return key;
  struct Input {
    char purpose[8] = {"gp core"};
    std::uint32_t part = 0;
    std::uint32_t half = 0;
  };
  static_assert(sizeof(Input) == 16, "hashed as bytes: no padding");
  std::array<std::uint64_t, 2> halves{};
  for (std::uint32_t half = 0; half < 2; ++half) {
    const Input input{.part = static_cast<std::uint32_t>(part), .half = half};
    halves[half] = siphash24(key, std::as_bytes(std::span(&input, 1)));
  }
  return std::bit_cast<wire::Key>(halves);
}

std::vector<GroupName> groups_of(const api::Plan& whole, std::uint32_t job, api::NodeId self,
                                 std::size_t cores) {
  std::vector<GroupName> groups;
  const api::Plan plan = split_trees(whole, cores);
  const std::optional<std::size_t> me = place_of(plan, self);
  if (!me) return groups;
  for (std::size_t t = 0; t < plan.trees.size(); ++t) {
    const std::vector<api::NodeId>& parents = plan.trees[t].parent;
    const api::NodeId parent = parents[*me];
    const auto children =
        static_cast<std::size_t>(std::count(parents.begin(), parents.end(), parent));
    if (parent == api::kNoNode || children < kMinGroupMembers) continue;
    groups.push_back(
        {.job = job, .epoch = plan.epoch, .sender = parent, .tree = static_cast<std::uint8_t>(t)});
  }
  for (std::size_t s = 0; s < plan.selections.size(); ++s) {
    for (std::size_t t = 0; t < plan.trees.size(); ++t) {
      const api::NodeId sender = plan.trees[t].root;
      const auto& receivers = plan.selections[s].receivers[*place_of(plan, sender)];
      const bool is_mine = std::find(receivers.begin(), receivers.end(), self) != receivers.end();
      if (!is_mine || receivers.size() < kMinGroupMembers) continue;
      groups.push_back({.job = job,
                        .epoch = plan.epoch,
                        .sender = sender,
                        .tree = static_cast<std::uint8_t>(t),
                        .selection = static_cast<std::uint8_t>(s)});
    }
  }
  return groups;
}

}  // namespace gradplane::engine
