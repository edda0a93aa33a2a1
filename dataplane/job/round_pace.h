// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/base/time.h"
#include "dataplane/model/limits.h"

namespace gradplane::job {

/// How fast the rounds of a job begin at this node: when each of the last kRounds began, at the
/// resolution of the poll loop. Rounds that begin together, such as the buckets of an iteration,
/// each count.
class RoundPace {
 public:
  /// `next_round`: the round after the newest that was ever opened here.
  void look(Instant now, std::uint32_t next_round) {
    const std::uint32_t more = is_begun_ ? next_round - next_round_ : 0;
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(more, kRounds); ++i) {
      begun_at_[count_++ % kRounds] = now;
    }
    next_round_ = next_round;
    is_begun_ = true;
  }

  /// The most rounds that may begin here within `span`: the most that did among the last kRounds,
  /// and one more. kRounds until so many have been seen.
  std::uint32_t most_in(Duration span) const {
    if (count_ < kRounds) return kRounds;
    std::uint32_t most = 0;
    std::size_t first = count_ - kRounds;
    for (std::size_t last = first; last < count_; ++last) {
      while (at(last) - at(first) > span) ++first;
      most = std::max(most, static_cast<std::uint32_t>(last - first + 1));
    }
    return std::min(most + 1, kRounds);
  }

 private:
  static constexpr std::uint32_t kRounds = kMaxActivationMarginRounds;

  Instant at(std::size_t index) const { return begun_at_[index % kRounds]; }

  std::array<Instant, kRounds> begun_at_{};  // a ring
  std::size_t count_ = 0;                    // rounds that were ever seen to begin
  std::uint32_t next_round_ = 0;
  bool is_begun_ = false;
};

}  // namespace gradplane::job
