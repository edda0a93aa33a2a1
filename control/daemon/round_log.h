// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <deque>

#include "control/telemetry/rounds.h"
#include "dataplane/model/round_report.h"

namespace gradplane::daemon {

/// The last rounds of one job that this node has closed. Control thread.
class RoundLog {
 public:
  /// Reports come in the order of their numbers; where one is left out, it was lost.
  void add(const RoundReport& report) {
    lost_ += report.number - closed_ - 1;
    closed_ = report.number;
    kept_.push_back(report);
    if (kept_.size() > telemetry::kKeptRounds) kept_.pop_front();
  }

  /// Oldest first.
  const std::deque<RoundReport>& kept() const { return kept_; }
  /// Since the start: rounds, and of them those of which nothing was heard.
  std::uint64_t closed() const { return closed_; }
  std::uint64_t lost() const { return lost_; }

 private:
  std::deque<RoundReport> kept_;
  std::uint64_t closed_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace gradplane::daemon
