// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstdint>

#include "dataplane/congestion/controller.h"

namespace gradplane::congestion {

/// The minimum round trip that controllers assume: for a path without a measurement, and for a path
/// that is too fast for our clocks.
inline constexpr Duration kShortestRoundTrip = Duration::us(100);

/// Limits reductions of a window to one in a round trip. Packets that are lost or marked within
/// this time were sent before the sender could react (RFC 5681 section 3.2, RFC 3168 section
/// 6.1.2).
class Reactions {
 public:
  bool may_react(Instant now) const { return now >= again_at_; }
  /// Whether a loss is news: one of the lost blocks was sent after the last reduction. Losses of an
  /// outage or of a full queue are often found more than a round trip after the reduction that
  /// answered them (RFC 9002 section 7.3.2 and appendix B.6).
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

/// Whether the window limits the flow. If not, it must not grow (RFC 9002 section 7.8).
inline bool window_is_used(const AckEvent& event, double window_blocks) {
  return event.in_flight_blocks * 2 >= static_cast<std::uint32_t>(window_blocks);
}

}  // namespace gradplane::congestion
