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
  std::uint32_t epoch = 0;  // epoch of the plan whose trees `gathered` names
  std::vector<GatheredTree> gathered;
  CloseLimits limits;
  bool has_inbox = false;       // its exchanges are under bounded staleness
  bool keeps_residual = false;  // this node pushes or rounds, and carries what does not enter
};

/// A registered bucket of one job at one node: its tensors, how much of each may be missing, and
/// how much has been. The control thread makes and destroys it; in between it belongs to the poll
/// loop, except for the functions that any thread may call.
class Bucket {
 public:
  explicit Bucket(const BucketConfig& config);
  Bucket(const Bucket&) = delete;
  Bucket& operator=(const Bucket&) = delete;

  const Geometry& geometry() const { return geometry_; }
  const TensorMap& map() const { return map_; }
  /// Blocks that must arrive under the initial bounds, because they hold elements of an exact
  /// tensor or of none. They are sent first. Which blocks may be missing is decided by the
  /// gathering.
  const Bitmap& critical() const { return critical_; }
  bool is_critical(std::uint32_t block) const { return critical_.test(block); }
  /// Whether some of its blocks go in a narrower type than the trainer's.
  bool narrows() const { return !wire_types_.empty(); }
  /// The wire type of a block of a sum over all ranks.
  WireType wire_type(std::uint32_t block) const {
    return wire_types_.empty() ? WireType::kElements : wire_types_[block];
  }
  /// The narrowest wire type among its blocks.
  WireType narrowest() const { return narrowest_; }
  /// The gathering in a tree of a plan in which this node has children; nullptr for other trees. It
  /// is also nullptr while a round of the bucket is gathered under another plan, because a bucket
  /// is gathered under one plan at a time.
  Gather* gather(std::uint32_t epoch, std::size_t tree);
  Residual* residual() { return residual_.get(); }
  /// nullptr if exchanges of this bucket are not under bounded staleness.
  Inbox* inbox() { return inbox_.get(); }
  /// Its gatherings under a plan; nullptr if it has none, or none yet.
  GatherSet* part_of(std::uint32_t epoch);

  /// Makes the gatherings in the trees of a further plan, and a residual if the bucket will need
  /// one and has none. They do nothing until add_plan(). Control thread.
  std::unique_ptr<GatherSet> make_gathers(std::uint32_t epoch,
                                          const std::vector<GatheredTree>& trees) const;
  std::unique_ptr<Residual> make_residual();
  /// Takes a residual back that the poll loop has not used. Control thread.
  void take_back(std::unique_ptr<Residual> /*residual*/) { residual_is_made_ = false; }
  /// Whether a residual was made. Control thread.
  bool has_residual() const { return residual_is_made_; }
  /// Adds the gatherings of a plan, which must live until remove_plan() of its epoch.
  void add_plan(GatherSet& gathers, std::unique_ptr<Residual>& residual);
  void remove_plan(std::uint32_t epoch);
  /// Removes all plans but this one: plans that the poll loop has ended or never had.
  void keep_only(std::uint32_t epoch);
  /// Like add_plan(), but the bucket owns the set. Called before the poll loop has the bucket.
  void keep_plan(std::unique_ptr<GatherSet> gathers);

  /// Counts a round that a tree rooted here has summed.
  void count_close(CloseReason reason, const Gather& gather);
  /// Counts a block that this node pushed and that did not enter.
  void count_excluded(std::uint32_t block);

  /// The functions from here on may be called by any thread.
  std::uint32_t id() const { return geometry_.bucket; }
  std::size_t tensor_count() const { return map_.size(); }
  std::uint32_t blocks_of(std::size_t tensor) const { return map_.blocks(tensor).size(); }
  float bound(std::size_t tensor) const { return bounds_[tensor].load(std::memory_order_relaxed); }
  /// Sets a bound from the next round on. Control thread.
  void set_bound(std::size_t tensor, float bound);
  /// Missing and expected blocks of all sources in all trees rooted here, since the start. A block
  /// that two tensors share counts for both.
  std::uint64_t missing_blocks(std::size_t tensor) const {
    return sum_of(tensor, &BlockTotals::missing);
  }
  std::uint64_t expected_blocks(std::size_t tensor) const {
    return sum_of(tensor, &BlockTotals::expected);
  }
  /// Excluded blocks of this node's pushes, since the start.
  std::uint64_t excluded_blocks(std::size_t tensor) const {
    return sum_of(tensor, &BlockTotals::excluded);
  }
  std::uint64_t closes(CloseReason reason) const {
    return read(closes_[static_cast<std::size_t>(reason)]);
  }
  /// The number of hosts below this node in trees of the oldest live plan that are rooted here.
  /// Only the control thread, because it destroys the sets.
  std::size_t source_count() const;
  SourceReport source(std::size_t index) const;
  /// How noisy the tensor's gradient is: decaying sums over sampled complete blocks that lie inside
  /// the tensor. part_energy() sums the squares of every contribution, sum_energy() the squares of
  /// their sum.
  double part_energy(std::size_t tensor) const { return noise_[tensor].part_energy; }
  double sum_energy(std::size_t tensor) const { return noise_[tensor].sum_energy; }

  /// Add the squares of a contribution to a block, and then the squares of the sum of all
  /// contributions. Poll loop.
  void add_part(std::uint32_t block, double energy) { parts_[block] += energy; }
  void end_parts(std::uint32_t block, double sum_energy);
  void reset_parts(BlockRange range);

 private:
  /// Counts by block, because blocks are what is lost. A tensor's counts are added up when somebody
  /// asks, and not by the poll loop.
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
  std::vector<WireType> wire_types_;  // by block; empty: all plain elements
  WireType narrowest_ = WireType::kElements;
  CloseLimits limits_;
  std::vector<bool> is_learned_;  // by tensor
  std::vector<std::unique_ptr<GatherSet>> own_sets_;
  /// The sets of live plans, in the order of their epochs. Only the poll thread writes them.
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
