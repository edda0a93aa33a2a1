// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "dataplane/aggregate/local_ranks.h"
#include "dataplane/base/fixed_queue.h"
#include "dataplane/hop/ack_queue.h"
#include "dataplane/hop/counters.h"
#include "dataplane/model/loss_bounds.h"
#include "dataplane/model/round_report.h"

namespace gradplane::aggregate {

/// Reports of rounds that were closed here. They are only shown to people: reports that nobody
/// takes are lost, and gaps in their numbers show how many.
class ReportQueue {
 public:
  explicit ReportQueue(std::size_t capacity) : reports_(capacity) {}

  void push(RoundReport report) {
    report.number = ++count_;
    (void)reports_.push(report);
  }
  bool pop(RoundReport& out) {
    if (reports_.empty()) return false;
    out = reports_.front();
    reports_.pop();
    return true;
  }

 private:
  FixedQueue<RoundReport> reports_;
  std::uint64_t count_ = 0;
};

/// What the trees of one plan share. Everything but world_size and acks belongs to the job.
struct Context {
  const LocalRanks& ranks;
  std::uint16_t world_size = 0;
  Compensation compensation = Compensation::kRescale;
  bool measure_energy = false;  // needed by bounds that are learned
  hop::Counters& counters;
  hop::AckQueue& acks;
  ReportQueue& reports;
};

}  // namespace gradplane::aggregate
