// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "control/telemetry/rounds.h"
#include "dataplane/model/core_part.h"
#include "dataplane/model/round_report.h"

namespace gradplane::daemon {

/// The last rounds of one job that this node has closed. Control thread.
class RoundLog {
 public:
  /// Adds a report. The reports of a part come in the order of their numbers; a gap means that
  /// reports were lost. The report gets a new number, which counts the rounds of all parts.
  void add(const RoundReport& report, std::size_t part) {
    std::uint64_t& last = closed_of_part_[part];
    const std::uint64_t closed = report.number - last;
    last = report.number;
    closed_ += closed;
    lost_ += closed - 1;
    kept_.push_back(report);
    kept_.back().number = closed_;
    if (kept_.size() > telemetry::kKeptRounds) kept_.pop_front();
  }

  /// Oldest first.
  const std::deque<RoundReport>& kept() const { return kept_; }
  /// Rounds that were closed since the start, and those among them whose reports were lost.
  std::uint64_t closed() const { return closed_; }
  std::uint64_t lost() const { return lost_; }

 private:
  std::deque<RoundReport> kept_;
  std::array<std::uint64_t, kMaxCores> closed_of_part_{};
  std::uint64_t closed_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace gradplane::daemon
