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

/// The link of a node with several engines. The engine of queue 0 owns its budget: it looks at what
/// the others want, and gives them leases. Nothing here waits, and a packet touches nothing of it.
/// Made by the control thread before the engines; it outlives them.
class SharedLink {
 public:
  /// `bits_per_second` 0: not known, and nobody is paced.
  SharedLink(std::uint64_t bits_per_second, std::size_t engines);

  /// What an engine begins with. Before the first renew().
  hop::LinkShare share(std::size_t engine) const { return budget_.share(engine); }

  /// The poll thread of queue 0: new leases, when it is time.
  void renew(Instant now);

  /// The poll thread of an engine: what it would send alone, 0 if it is idle; and the newest lease,
  /// if one has come. False: none has.
  void want(std::size_t engine, std::uint64_t bits_per_second) {
    lines_[engine]->wanted.store(bits_per_second, std::memory_order_relaxed);
  }
  bool take(std::size_t engine, hop::LinkLease& lease);

 private:
  /// An engine that stands still loses the leases that find this full, and they would have ended
  /// before it went on.
  static constexpr std::size_t kLeasesUnderWay = 4;
  static_assert(kLeasesUnderWay * hop::kLeasePeriod.count_ns() >= hop::kLeaseTime.count_ns());

  struct Line {
    SpscQueue<hop::LinkLease> leases{kLeasesUnderWay};
    alignas(64) std::atomic<std::uint64_t> wanted{0};  // the engine: rw, queue 0: ro
  };

  hop::LinkBudget budget_;  // after the constructor, of the poll thread of queue 0
  std::vector<std::unique_ptr<Line>> lines_;
};

/// What an engine says that it wants: twice what it has sent lately, or the whole link once it had
/// more to send than its lease let it. Of one poll thread.
class LinkDemand {
 public:
  explicit LinkDemand(std::uint64_t link_bits_per_second) : link_(link_bits_per_second) {}

  /// At every look: what the engine has sent in all, and whether something waits for the link
  /// alone. True when a period has ended; `wanted()` is about it.
  bool look(Instant now, std::uint64_t sent_bytes, bool is_held_back);
  std::uint64_t wanted() const { return wanted_; }

 private:
  std::uint64_t link_;
  std::uint64_t wanted_ = 0;
  std::uint64_t sent_bytes_ = 0;  // when the period began
  Instant begin_;
  bool was_held_back_ = false;
};

}  // namespace gradplane::engine
