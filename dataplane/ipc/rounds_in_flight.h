// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "dataplane/model/limits.h"

namespace gradplane::ipc {

/// Which rounds of one rank were submitted and not yet completed. The rank and its daemon each keep
/// their own object, so each relies only on what it has seen itself. Round numbers may wrap.
class RoundsInFlight {
 public:
  explicit RoundsInFlight(std::uint32_t max_count = kMaxInFlightRounds,
                          std::uint32_t first = 0) noexcept
      : max_count_(max_count), next_(first), oldest_(first) {}

  /// Whether the oldest incomplete round forbids a further one. A result stays in its slot until
  /// every rank has it, and only then may the slot be reused.
  bool full() const noexcept { return next_ - oldest_ >= max_count_; }
  bool empty() const noexcept { return next_ == oldest_; }
  std::uint32_t next() const noexcept { return next_; }

  /// Counts the round next() as submitted. Only if not full().
  void submit() noexcept { ++next_; }

  /// Counts a round as complete. False if the round is not in flight, so the completion is
  /// impossible.
  bool complete(std::uint32_t round) noexcept {
    const std::uint32_t index = round - oldest_;
    if (index >= next_ - oldest_ || ((done_ >> index) & 1u) != 0) return false;
    done_ |= std::uint32_t{1} << index;
    while ((done_ & 1u) != 0) {
      done_ >>= 1;
      ++oldest_;
    }
    return true;
  }

 private:
  static_assert(kMaxInFlightRounds <= 32, "one bit for each");
  std::uint32_t max_count_;
  std::uint32_t next_;
  std::uint32_t oldest_;
  std::uint32_t done_ = 0;  // bit i: round oldest_ + i is complete
};

}  // namespace gradplane::ipc
