// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_set>

namespace gradplane::shim {

/// What the ranks of one DDP reducer owe each other where they exchange gradients instead of
/// summing them: counts its backward passes, and says when the parameters are to be averaged over
/// all ranks. Every answer follows from what all ranks have seen alike once a pass has ended, so
/// all ranks get the same answer at the same forward pass. Any thread.
class ExchangeSchedule {
 public:
  /// Where the operator wants no averages, the drift is measured after so many passes.
  static constexpr std::uint64_t kMeasureEvery = 100;

  /// A bucket of these parameters is about to be reduced. Returns the number of its pass, from 0. A
  /// pass reduces every parameter once, so one that has come already begins the next pass. The
  /// index of a bucket does not tell: in the first pass of a static graph all have the same.
  std::uint64_t begin_bucket(std::span<const void* const> parameters);

  /// How a bucket was reduced: `exchanged` at least in part, `summed` at least in part.
  struct BucketEnd {
    bool exchanged = false;
    bool summed = false;
    std::uint32_t average_every = 0;  // passes, as the operator chose; 0: never
  };
  void end_bucket(const BucketEnd& end);

  enum class Due { kNothing, kMeasure, kAverage };
  /// At the begin of a forward pass. Once after each backward pass, and only while replicas may
  /// differ, something may be due.
  Due take_due();

  /// Backward passes so far.
  std::uint64_t passes() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_set<const void*> reduced_;  // of the present pass
  std::uint64_t passes_ = 0;
  std::uint64_t measured_at_ = 0;  // passes
  std::uint32_t average_every_ = 0;
  bool has_exchanged_ = false;
  bool apart_ = false;   // some gradients were exchanged since the last average
  bool summed_ = false;  // since the last forward pass, some were not
};

}  // namespace gradplane::shim
