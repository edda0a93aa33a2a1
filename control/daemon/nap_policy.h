// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstdint>

#include "dataplane/base/time.h"
#include "dataplane/hop/flow.h"
#include "dataplane/job/job_config.h"

namespace gradplane::daemon {

/// How long the poll loop sleeps when it finds nothing to do. A doorbell ends a nap, but a packet
/// does not. So a nap lasts a sixteenth of the time since the last work. Whatever the interval
/// between packets, a packet waits for at most a sixteenth of it, or for the first nap if that is
/// longer. Pure.
class NapPolicy {
 public:
  /// Shorter naps cost more processor than they save time.
  static constexpr Duration kMinNap = Duration::us(10);
  /// On a link of known rate the first nap lasts as long as the link takes for so many packets.
  static constexpr std::int64_t kNapPackets = 8;
  /// The longest first nap. The pacer makes up for it with a burst.
  static constexpr Duration kMaxFirstNap = Duration::us(500);
  static_assert(kMaxFirstNap * 2 <= hop::kPacerBurst);
  static constexpr std::int64_t kIdleShare = 16;
  /// While there are jobs, naps are this short, because a round may begin on another host at any
  /// moment. After kLongIdle the wait is longer than an iteration of training, so naps may be long.
  static constexpr Duration kMaxNapWithJobs = Duration::us(500);
  static constexpr Duration kLongIdle = Duration::seconds(1);

  /// `link_bits_per_second`: 0 if it is not known. `max_nap`: the longest of all.
  NapPolicy(std::uint64_t link_bits_per_second, Duration max_nap)
      : first_(std::clamp(block_time(link_bits_per_second) * kNapPackets, kMinNap, kMaxFirstNap)),
        max_(max_nap) {}

  /// The time that one block takes on the link; 0: not known.
  static Duration block_time(std::uint64_t link_bits_per_second) {
    if (link_bits_per_second == 0) return {};
    constexpr std::int64_t kBits =
        static_cast<std::int64_t>(kDefaultBlockBytes + hop::kWireOverheadBytes) * 8;
    return Duration::ns(kBits * 1'000'000'000 / static_cast<std::int64_t>(link_bits_per_second));
  }

  /// `idle` is the time since the last work, `until_deadline` the time until the loop's next
  /// deadline. A nap is never shorter than the first one, so it may end after the deadline.
  Duration length(Duration idle, bool has_jobs, Duration until_deadline) const {
    const bool is_near = has_jobs && idle < kLongIdle;
    const Duration limit = is_near ? std::min(kMaxNapWithJobs, max_) : max_;
    const Duration wanted = std::min(std::max(first_, idle / kIdleShare), limit);
    return std::min(wanted, std::max(until_deadline, first_));
  }

 private:
  Duration first_;
  Duration max_;
};

}  // namespace gradplane::daemon
