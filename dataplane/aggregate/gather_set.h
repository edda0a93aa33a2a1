// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/aggregate/gather.h"

namespace gradplane::aggregate {

/// A tree in which this node has children. Under bounded staleness, one child of the tree that is
/// rooted here.
struct GatheredTree {
  std::uint8_t tree = 0;
  std::vector<GatherSource> sources;
  double share = 1;  // see Gather
  bool is_root = true;
  bool is_stream = false;  // of one child only, which is not in step with this node
};

/// How far ranks are in a bucket under bounded staleness: counts of exchanges since the plan began.
struct ExchangesDone {
  std::uint32_t submitted = 0;          // exchanges of this node's rank
  std::vector<std::uint32_t> received;  // by child of the tree rooted here

  /// How many exchanges the rank of a child is behind what this node's rank has submitted.
  std::int64_t lag_of(std::size_t child) const {
    return std::int64_t{submitted} - std::int64_t{received[child]};
  }
};

/// The gatherings of one bucket in all trees of one plan in which this node has children. The
/// control thread makes and destroys it.
class GatherSet {
 public:
  /// `map`, `bounds`, `is_learned` (by tensor) and `limits` are the bucket's.
  GatherSet(std::uint32_t epoch, const std::vector<GatheredTree>& trees, const TensorMap& map,
            const std::vector<std::atomic<float>>& bounds, const std::vector<bool>& is_learned,
            const CloseLimits& limits);

  std::uint32_t epoch() const { return epoch_; }
  /// nullptr for a tree in which this node has no children, or whose children are streams.
  Gather* gather(std::size_t tree);
  /// The gathering of the n-th child of the tree that is rooted here, if children are streams.
  Gather& stream(std::size_t child) { return *gathers_[child]; }
  ExchangesDone& done() { return done_; }
  const ExchangesDone& done() const { return done_; }
  bool any_open() const;
  /// Takes over from the set of the older plan: its number of rounds, and what it has learned of
  /// nodes that are sources in both.
  void begin_after(const GatherSet& before);
  bool has_begun() const { return has_begun_; }
  /// Adds the counts of the older plan's set for nodes that are sources in both.
  void add_counts(const GatherSet& other);

  /// The number of hosts below this node in trees rooted here. Any thread.
  std::size_t source_count() const;
  SourceReport source(std::size_t index) const;

 private:
  std::uint32_t epoch_;
  bool has_begun_ = false;
  std::vector<std::uint8_t> trees_;  // tree of each of gathers_
  std::vector<bool> is_root_;        // whether that tree is rooted here
  bool has_streams_ = false;         // if so, each gathering belongs to one child
  ExchangesDone done_;
  std::vector<std::unique_ptr<Gather>> gathers_;
};

}  // namespace gradplane::aggregate
