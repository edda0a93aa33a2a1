// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "dataplane/model/limits.h"
#include "dataplane/model/operation.h"

namespace gradplane {

/// Below this number of receivers there is no group: a single receiver gets its blocks alone.
inline constexpr std::size_t kMinGroupMembers = 2;

/// The most groups that a node is in under one plan: those of its parents, and those in which it
/// gets the updates of others. A plan with selections has a tree for each of its nodes.
inline constexpr std::size_t kMaxGroupsOfPlan = kMaxTrees + kMaxSelections * (kMaxTrees - 1);

/// Names the receivers of the same blocks from one node under one plan: the children of the node in
/// one tree get its results, and the receivers that a selection names get its updates. If the
/// network supports multicast, the node sends each block to all of them at once.
struct GroupName {
  std::uint32_t job = 0;  // the id on the wire
  std::uint32_t epoch = 0;
  std::uint16_t sender = 0;
  std::uint8_t tree = 0;  // updates: the tree whose root the sender is
  std::optional<std::uint8_t> selection = std::nullopt;  // only for updates
  constexpr auto operator<=>(const GroupName&) const = default;
};

}  // namespace gradplane
