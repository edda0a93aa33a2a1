// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/aggregate/tree.h"
#include "dataplane/hop/peer_table.h"
#include "dataplane/job/job_config.h"
#include "dataplane/model/geometry.h"

namespace gradplane::job {

/// Who sums what where, as this node sees it: its place in each tree of one epoch, and which blocks
/// of a round each tree carries.
class Plan {
 public:
  /// Allocates everything that its rounds will need.
  explicit Plan(const JobConfig& config);
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  std::uint32_t epoch() const { return epoch_; }
  std::span<aggregate::Tree> trees() { return trees_; }
  std::span<const aggregate::Tree> trees() const { return trees_; }
  /// Over all trees.
  std::size_t edge_count() const;

  /// The blocks of `round` that a tree carries. All nodes compute the same.
  BlockRange range_of(std::size_t tree, std::uint32_t round, const Geometry& geometry) const;
  /// Begins the round in every tree.
  void open(aggregate::Round& round);

  /// Lets the peers know the edges that lead to them.
  void connect(hop::PeerTable& peers);

 private:
  std::uint32_t epoch_;
  aggregate::HostTable hosts_;
  std::uint64_t total_weight_;
  std::vector<aggregate::Tree> trees_;
};

}  // namespace gradplane::job
