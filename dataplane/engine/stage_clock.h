// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/api/stage.h"
#include "dataplane/base/time.h"

namespace gradplane::engine {

/// A measured turn reads the clock seven times, at some 25 ns each, so only one turn in this many
/// is measured. The number shares no factor with the engine's kHousekeepingTurns. Otherwise too
/// many of the measured turns would have housekeeping.
inline constexpr std::uint64_t kMeasuredTurns = 61;
static_assert(kMeasuredTurns % 2 == 1);

/// Estimates how long the stages of the poll loop take, from a sample of its turns. Turns without
/// work do not count.
class StageClock {
 public:
  /// `clock` must be monotonic. Null: nothing is measured.
  explicit StageClock(Instant (*clock)()) : clock_(clock) {}

  void begin_turn(std::uint64_t turn) {
    is_measured_ = clock_ != nullptr && turn % kMeasuredTurns == 0;
    if (!is_measured_) return;
    turn_ = {};
    at_ = clock_();
  }
  void end(api::Stage stage) {
    if (!is_measured_) return;
    const Instant now = clock_();
    turn_[static_cast<std::size_t>(stage)] += static_cast<std::uint64_t>((now - at_).count_ns());
    at_ = now;
  }
  void end_turn(bool worked) {
    if (!is_measured_ || !worked) return;
    for (std::size_t s = 0; s < turn_.size(); ++s) times_[s] += turn_[s] * kMeasuredTurns;
  }

  /// An estimate of the total over all turns, in nanoseconds.
  const api::StageTimes& times() const { return times_; }

 private:
  Instant (*clock_)();
  bool is_measured_ = false;
  Instant at_;
  api::StageTimes turn_{};  // of the turn that is being measured
  api::StageTimes times_{};
};

}  // namespace gradplane::engine
