// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/aggregate/gather_set.h"
#include "dataplane/aggregate/inbox.h"
#include "dataplane/aggregate/residual.h"
#include "dataplane/aggregate/tensor_map.h"
#include "dataplane/base/bitmap.h"
#include "dataplane/model/loss_bounds.h"

namespace gradplane::aggregate {

struct BucketConfig {
  Geometry geometry;  // geometry.bucket is the bucket's id
  std::vector<TensorBound> tensors;
  std::uint32_t epoch = 0;  // of the plan whose trees `gathered` names
  std::vector<GatheredTree> gathered;
  CloseLimits limits;
  bool has_inbox = false;       // its exchanges are under bounded staleness
  bool keeps_residual = false;  // this node pushes or rounds, and what does not enter is carried
};

/// A registered bucket of one job at one node: which tensors lie where, what may be missing of
/// them, and what has been. The control thread makes and destroys it; in between it is the poll
/// loop's, save for what says "any thread".
class Bucket {
 public:
  explicit Bucket(const BucketConfig& config);
  Bucket(const Bucket&) = delete;
  Bucket& operator=(const Bucket&) = delete;

  const Geometry& geometry() const { return geometry_; }
  const TensorMap& map() const { return map_; }
  /// Blocks that must arrive under the bounds at the start: they hold elements of an exact tensor,
  /// or of none. What goes first; what may be missing is the gathering's business.
  const Bitmap& critical() const { return critical_; }
  bool is_critical(std::uint32_t block) const { return critical_.test(block); }
  /// Whether some of its blocks go in another type than the trainer's.
  bool narrows() const { return !wire_types_.empty(); }
  /// How a block of a sum over all ranks goes.
  WireType wire_type(std::uint32_t block) const {
    return wire_types_.empty() ? WireType::kElements : wire_types_[block];
  }
  /// The gathering in a tree of a plan in which this node has children; nullptr for other trees.
  /// While a round of the bucket is gathered under another plan there is none: a bucket gathers one
  /// round at a time.
  Gather* gather(std::uint32_t epoch, std::size_t tree);
  Residual* residual() { return residual_.get(); }
  /// nullptr: exchanges of this bucket are not under bounded staleness.
  Inbox* inbox() { return inbox_.get(); }
  /// What it has of the plan; nullptr when it has nothing, or not yet.
  GatherSet* part_of(std::uint32_t epoch);

  /// The gathering in the trees of a further plan, and a residual if the bucket will need one and
  /// has none. Control thread; they do nothing until add_plan().
  std::unique_ptr<GatherSet> make_gathers(std::uint32_t epoch,
                                          const std::vector<GatheredTree>& trees) const;
  std::unique_ptr<Residual> make_residual();
  /// A residual that the poll loop has not taken. Control thread.
  void take_back(std::unique_ptr<Residual> /*residual*/) { residual_is_made_ = false; }
  /// Whether one was made. Control thread.
  bool has_residual() const { return residual_is_made_; }
  /// The set lives until remove_plan() of its epoch.
  void add_plan(GatherSet& gathers, std::unique_ptr<Residual>& residual);
  void remove_plan(std::uint32_t epoch);
  /// Removes the plans that the poll loop does not have any more, or never had.
  void keep_only(std::uint32_t epoch);
  /// Like add_plan(), but the set lives as long as the bucket. Before the poll loop has the bucket.
  void keep_plan(std::unique_ptr<GatherSet> gathers);

  /// Counts a round that a tree rooted here has summed.
  void count_close(CloseReason reason, const Gather& gather);
  /// Counts one of our own pushed blocks that did not enter.
  void count_excluded(std::uint32_t block);

  /// Any thread from here on.
  std::uint32_t id() const { return geometry_.bucket; }
  std::size_t tensor_count() const { return map_.size(); }
  std::uint32_t blocks_of(std::size_t tensor) const { return map_.blocks(tensor).size(); }
  float bound(std::size_t tensor) const { return bounds_[tensor].load(std::memory_order_relaxed); }
  /// From the next round on. Control thread.
  void set_bound(std::size_t tensor, float bound);
  /// Of all sources in all trees rooted here, since the start. A block that two tensors share
  /// counts for both.
  std::uint64_t missing_blocks(std::size_t tensor) const {
    return sum_of(tensor, &BlockTotals::missing);
  }
  std::uint64_t expected_blocks(std::size_t tensor) const {
    return sum_of(tensor, &BlockTotals::expected);
  }
  /// Of what this node pushed, since the start.
  std::uint64_t excluded_blocks(std::size_t tensor) const {
    return sum_of(tensor, &BlockTotals::excluded);
  }
  std::uint64_t closes(CloseReason reason) const {
    return read(closes_[static_cast<std::size_t>(reason)]);
  }
  /// Hosts below this node, in all trees of the oldest live plan that are rooted here. Control
  /// thread: it destroys the sets.
  std::size_t source_count() const;
  SourceReport source(std::size_t index) const;
  /// Sums, decaying, over sampled complete blocks that lie inside the tensor: of every
  /// contribution's squares, and of the squares of their sum. How noisy its gradient is.
  double part_energy(std::size_t tensor) const { return noise_[tensor].part_energy; }
  double sum_energy(std::size_t tensor) const { return noise_[tensor].sum_energy; }

  /// Squares of a contribution to a block, and then of the sum of them all. Poll loop.
  void add_part(std::uint32_t block, double energy) { parts_[block] += energy; }
  void end_parts(std::uint32_t block, double sum_energy);
  void reset_parts(BlockRange range);

 private:
  /// Counted by block, because a block is what is lost: a tensor's counts are added up when
  /// somebody asks, and not by the poll loop.
  struct BlockTotals {
    SharedCount missing = 0;
    SharedCount expected = 0;
    SharedCount excluded = 0;
  };
  struct Noise {
    std::atomic<double> part_energy = 0;
    std::atomic<double> sum_energy = 0;
  };
  static std::uint64_t read(const SharedCount& count) {
    return count.load(std::memory_order_relaxed);
  }
  std::uint64_t sum_of(std::size_t tensor, SharedCount BlockTotals::*count) const;

  Geometry geometry_;
  TensorMap map_;
  std::vector<std::atomic<float>> bounds_;
  Bitmap critical_;
  std::vector<WireType> wire_types_;  // by block; empty: all as they are
  CloseLimits limits_;
  std::vector<bool> is_learned_;  // by tensor
  std::vector<std::unique_ptr<GatherSet>> own_sets_;
  /// Of live plans, in the order of their epochs. Written by the poll thread alone.
  std::array<std::atomic<GatherSet*>, kMaxLivePlans> sets_{};
  std::unique_ptr<Residual> residual_;
  std::unique_ptr<Inbox> inbox_;
  bool residual_is_made_ = false;          // control thread
  std::unique_ptr<BlockTotals[]> totals_;  // by block
  std::unique_ptr<Noise[]> noise_;         // by tensor
  std::vector<double> parts_;              // by block, of the open round
  std::array<SharedCount, kCloseReasons> closes_{};
};

}  // namespace gradplane::aggregate
