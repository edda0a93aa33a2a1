// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_set>

namespace gradplane::shim {

/// Decides, for one DDP reducer whose ranks exchange gradients instead of summing them, when the
/// parameters must be averaged over all ranks. It counts the backward passes. Its answers follow
/// from what all ranks have seen in the same way when a pass has ended, so all ranks get the same
/// answer at the same forward pass. Any thread.
class ExchangeSchedule {
 public:
  /// If the operator wants no averages, the drift is measured after so many passes.
  static constexpr std::uint64_t kMeasureEvery = 100;

  /// A bucket of these parameters is about to be reduced. Returns the number of its pass, from 0. A
  /// pass reduces every parameter once, so a parameter that comes again begins the next pass. The
  /// index of a bucket cannot tell passes apart: in the first pass of a static graph all buckets
  /// have the same.
  std::uint64_t begin_bucket(std::span<const void* const> parameters);

  /// How a bucket was reduced.
  struct BucketEnd {
    bool exchanged = false;           // at least in part
    bool summed = false;              // at least in part
    std::uint32_t average_every = 0;  // passes, as the operator chose; 0: never
  };
  void end_bucket(const BucketEnd& end);

  enum class Due { kNothing, kMeasure, kAverage };
  /// What is due at the beginning of a forward pass. Something is due at most once after each
  /// backward pass, and only while replicas may differ.
  Due take_due();

  /// Backward passes so far.
  std::uint64_t passes() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_set<const void*> reduced_;  // parameters of the present pass
  std::uint64_t passes_ = 0;
  std::uint64_t measured_at_ = 0;  // passes_ at the last average or measurement
  std::uint32_t average_every_ = 0;
  bool has_exchanged_ = false;
  bool apart_ = false;   // some gradients were exchanged since the last average
  bool summed_ = false;  // some gradients were summed since the last forward pass
};

}  // namespace gradplane::shim
