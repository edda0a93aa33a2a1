// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstdint>

#include "dataplane/congestion/controller.h"

namespace gradplane::congestion {

/// A path without a measurement, or a faster one than any clock here can follow.
inline constexpr Duration kShortestRoundTrip = Duration::us(100);

/// Reductions of a window, at most one in a round trip: what is lost or marked within it was sent
/// before the sender could react (RFC 5681 section 3.2, RFC 3168 section 6.1.2).
class Reactions {
 public:
  bool may_react(Instant now) const { return now >= again_at_; }
  /// Whether a loss says something that the last reduction did not answer: something of it was sent
  /// after that. What an outage or a full queue took is often found only later than a round trip
  /// after the reduction (RFC 9002 section 7.3.2 and appendix B.6).
  bool is_news(const LossEvent& loss) const { return loss.newest_sent >= reacted_at_; }
  void reacted(Instant now, Duration rtt, Reason why) {
    reacted_at_ = now;
    again_at_ = now + std::max(rtt, kShortestRoundTrip);
    ++stats_.reductions;
    stats_.reason = why;
  }
  void set_reason(Reason reason) { stats_.reason = reason; }
  const Stats& stats() const { return stats_; }

 private:
  Instant reacted_at_ = Instant::from_ns(INT64_MIN / 4);
  Instant again_at_ = Instant::from_ns(INT64_MIN / 4);
  Stats stats_;
};

/// Whether a window is what limits a flow; else it must not grow (RFC 9002 section 7.8).
inline bool window_is_used(const AckEvent& event, double window_blocks) {
  return event.in_flight_blocks * 2 >= static_cast<std::uint32_t>(window_blocks);
}

}  // namespace gradplane::congestion
