// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/aggregate/coverage.h"
#include "dataplane/hop/edge.h"
#include "dataplane/model/geometry.h"

namespace gradplane::aggregate {

struct ChildConfig {
  hop::PeerIndex peer;      // index in JobConfig::peers
  std::uint16_t ranks = 0;  // ranks in the child's subtree, all of which a complete block must name
  /// The hosts of the child's subtree, as indices into JobConfig::hosts.
  std::vector<std::uint16_t> hosts = {};
};

/// This node's place in one tree.
struct TreeConfig {
  bool member = false;                   // whether this node is in the tree
  hop::PeerIndex parent = hop::kNoPeer;  // a member without a parent is the root
  std::vector<ChildConfig> children;
  WeightShare share;
  /// The index of the root's host and the number of its children, also if this node is no member;
  /// see Partition::TreePart.
  std::size_t root_host = HostTable::kNone;
  std::size_t root_children = 1;
  /// Edges on the longest way down to a leaf, from this node and from the root.
  std::uint16_t height = 1;
  std::uint16_t tree_height = 1;
  /// Whether results go to the group of those children that hear it. Never under grants.
  bool multicasts_results = false;

  bool is_root() const { return member && parent == hop::kNoPeer; }
};

}  // namespace gradplane::aggregate
