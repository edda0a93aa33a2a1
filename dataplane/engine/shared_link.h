// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/base/spsc_queue.h"
#include "dataplane/base/time.h"
#include "dataplane/hop/link_budget.h"

namespace gradplane::engine {

/// The link of a node with several engines. The engine of queue 0 owns the link's budget: it reads
/// what the other engines want and gives them leases. No call here waits, and sending a packet
/// touches nothing of it. The control thread makes it before the engines; it outlives them.
class SharedLink {
 public:
  /// `bits_per_second` 0: the rate is not known, and no engine is paced.
  SharedLink(std::uint64_t bits_per_second, std::size_t engines);

  /// The share with which an engine begins. Call it before the first renew().
  hop::LinkShare share(std::size_t engine) const { return budget_.share(engine); }

  /// Gives new leases when they are due. Called by the poll thread of queue 0.
  void renew(Instant now);

  /// These two are called by the poll thread of `engine`. want() states the rate that the engine
  /// would use if it had the link to itself; 0 if it is idle. take() writes the newest lease to
  /// `lease`; false if no lease has come.
  void want(std::size_t engine, std::uint64_t bits_per_second) {
    lines_[engine]->wanted.store(bits_per_second, std::memory_order_relaxed);
  }
  bool take(std::size_t engine, hop::LinkLease& lease);

 private:
  /// An engine that stands still loses the leases that find its queue full. That does no harm: they
  /// would have ended before it went on.
  static constexpr std::size_t kLeasesUnderWay = 4;
  static_assert(kLeasesUnderWay * hop::kLeasePeriod.count_ns() >= hop::kLeaseTime.count_ns());

  struct Line {
    SpscQueue<hop::LinkLease> leases{kLeasesUnderWay};
    alignas(64) std::atomic<std::uint64_t> wanted{0};  // the engine writes it, queue 0 reads it
  };

  hop::LinkBudget budget_;  // belongs to the poll thread of queue 0 once it is constructed
  std::vector<std::unique_ptr<Line>> lines_;
};

/// The rate that an engine wants: twice what it has sent lately, or the whole link if its lease has
/// held it back. It belongs to one poll thread.
class LinkDemand {
 public:
  explicit LinkDemand(std::uint64_t link_bits_per_second) : link_(link_bits_per_second) {}

  /// Called regularly. `sent_bytes` counts all bytes that the engine has ever sent; `is_held_back`
  /// says whether packets wait for nothing but the link. True if a period has ended; wanted() is
  /// then about that period.
  bool look(Instant now, std::uint64_t sent_bytes, bool is_held_back);
  std::uint64_t wanted() const { return wanted_; }

 private:
  std::uint64_t link_;
  std::uint64_t wanted_ = 0;
  std::uint64_t sent_bytes_ = 0;  // sent_bytes at the beginning of the period
  Instant begin_;
  bool was_held_back_ = false;
};

}  // namespace gradplane::engine
