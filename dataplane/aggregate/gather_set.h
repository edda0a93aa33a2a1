// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/aggregate/gather.h"

namespace gradplane::aggregate {

/// A tree in which this node has children.
struct GatheredTree {
  std::uint8_t tree = 0;
  std::vector<GatherSource> sources;
  double share = 1;  // see Gather
  bool is_root = true;
};

/// The gathering of one bucket in all trees of one plan in which this node has children. The
/// control thread makes and destroys it.
class GatherSet {
 public:
  /// `map`, `bounds`, `is_learned` (by tensor) and `limits` are the bucket's.
  GatherSet(std::uint32_t epoch, const std::vector<GatheredTree>& trees, const TensorMap& map,
            const std::vector<std::atomic<float>>& bounds, const std::vector<bool>& is_learned,
            const CloseLimits& limits);

  std::uint32_t epoch() const { return epoch_; }
  /// nullptr for a tree in which this node has no children.
  Gather* gather(std::size_t tree);
  bool any_open() const;
  /// Begins where the set of the plan before is: with its number of rounds, and with what it has
  /// learned of the nodes that are sources in both.
  void begin_after(const GatherSet& before);
  bool has_begun() const { return has_begun_; }
  /// Counts what the set of an earlier plan has counted of the nodes that are sources in both.
  void add_counts(const GatherSet& other);

  /// Hosts below this node in trees rooted here. Any thread.
  std::size_t source_count() const;
  SourceReport source(std::size_t index) const;

 private:
  std::uint32_t epoch_;
  bool has_begun_ = false;
  std::vector<std::uint8_t> trees_;  // of gathers_
  std::vector<bool> is_root_;        // of gathers_
  std::vector<std::unique_ptr<Gather>> gathers_;
};

}  // namespace gradplane::aggregate
