// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/model/limits.h"
#include "dataplane/model/loss_bounds.h"

namespace gradplane {

/// The largest staleness bound of a job, in training steps.
inline constexpr std::uint32_t kMaxStalenessSteps = 64;

/// How far a round of another rank can be ahead of the oldest round of a node. That rank has
/// completed no exact round that the node lacks, and in each of the node's buckets at most one
/// exchange more than the bound allows. In addition, a few rounds are open.
constexpr std::uint32_t stream_lead_rounds(std::uint32_t bound_steps, std::uint32_t buckets) {
  return (bound_steps + 2) * buckets + static_cast<std::uint32_t>(kRoundSlots);
}

/// Bounded staleness (SSP: Ho et al., NIPS 2013): which ranks may begin their next round. A rank
/// waits only for ranks that are more than the bound behind it. With a bound of 0 all ranks are in
/// the same round. No call after construction allocates.
class Staleness {
 public:
  Staleness(std::size_t ranks, std::uint32_t bound_rounds)
      : bound_rounds_(bound_rounds), done_(ranks), is_gone_(ranks) {}

  std::size_t ranks() const { return done_.size(); }
  std::uint64_t rounds_done(std::size_t rank) const { return done_[rank]; }
  bool is_gone(std::size_t rank) const { return is_gone_[rank]; }

  /// The rank has done its round, so others have its update.
  void on_done(std::size_t rank) { ++done_[rank]; }
  /// The rank has died or left, so nobody waits for it.
  void on_gone(std::size_t rank) { is_gone_[rank] = true; }

  /// Whether `rank` waits for `other`, now or after this many further rounds of `rank`.
  bool waits_for(std::size_t rank, std::size_t other, std::uint32_t more_rounds = 0) const {
    if (is_gone_[rank] || is_gone_[other]) return false;
    const std::uint64_t ahead = done_[rank] + more_rounds;
    return ahead > done_[other] && ahead - done_[other] > bound_rounds_;
  }
  bool may_begin(std::size_t rank, std::uint32_t more_rounds = 0) const {
    for (std::size_t other = 0; other < ranks(); ++other) {
      if (waits_for(rank, other, more_rounds)) return false;
    }
    return !is_gone_[rank];
  }
  /// Whether another rank waits for this one, or would after one further round of its own.
  bool is_awaited(std::size_t rank) const {
    for (std::size_t other = 0; other < ranks(); ++other) {
      if (waits_for(other, rank, 1)) return true;
    }
    return false;
  }

 private:
  std::uint64_t bound_rounds_;
  std::vector<std::uint64_t> done_;
  std::vector<bool> is_gone_;
};

}  // namespace gradplane
