// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>

#include "dataplane/congestion/reactions.h"

namespace gradplane::congestion {

/// RFC 6928: the window before anything is known.
inline constexpr double kInitialWindow = 10;
/// RFC 5681 section 3.1: the loss window, after a silence.
inline constexpr double kLossWindow = 1;
/// RFC 5681 equation 4: no reduction goes below this.
inline constexpr double kMinThreshold = 2;
/// RFC 5681 section 4.1: after an idle time longer than a retransmission timeout, a flow starts
/// again with the window of a new flow. The timeout is Linux's minimum, or this number of round
/// trips (RFC 6298).
inline constexpr Duration kMinRest = Duration::ms(200);
inline constexpr std::int64_t kRestRoundTrips = 4;

/// Remembers when a flow last sent or heard something.
class RestClock {
 public:
  /// Whether a flow that sends now has been idle for so long that it must start anew.
  bool on_sent(Instant now, std::uint32_t in_flight_blocks) {
    const Duration rest = started_ && in_flight_blocks == 0 ? now - last_ : Duration();
    started_ = true;
    last_ = now;
    return rest > std::max(kMinRest, rtt_ * kRestRoundTrips);
  }
  void on_ack(const AckEvent& event) {
    last_ = event.now;
    if (event.smoothed_rtt > Duration()) rtt_ = event.smoothed_rtt;
  }

 private:
  bool started_ = false;
  Instant last_;
  Duration rtt_;
};

/// The window of TCP (RFC 5681): slow start up to a threshold, then one more block in each round
/// trip. The owner decides on which events it shrinks, and by how much.
class AdditiveWindow {
 public:
  void set_gain(double gain) { gain_ = gain; }

  /// RFC 5681 section 4.1.
  void on_sent(Instant now, std::uint32_t in_flight_blocks) {
    if (!rest_.on_sent(now, in_flight_blocks) || blocks_ <= kInitialWindow) return;
    blocks_ = kInitialWindow;
    reactions_.set_reason(Reason::kIdle);
  }

  /// Grows as in RFC 5681 section 3.1, by the blocks that are acked (equation 3 in the form of RFC
  /// 3465). Does not grow for a round trip after a reduction.
  void grow(const AckEvent& event) {
    rest_.on_ack(event);
    if (event.acked_blocks == 0 || !window_is_used(event, blocks_)) return;
    if (!reactions_.may_react(event.now)) return;
    if (blocks_ < threshold_) {
      blocks_ = std::min(blocks_ + event.acked_blocks, threshold_);
    } else {
      blocks_ += gain_ * event.acked_blocks / blocks_;
      reactions_.set_reason(Reason::kGrowth);
    }
    blocks_ = std::min(blocks_, kMaxWindow);
  }

  /// Reduces as in RFC 5681 section 3.2, with the owner's factor, once per round trip. As in Linux,
  /// the reduction starts from the window and not from the blocks in flight. An unused window has
  /// not grown either, and the end of a round should not cost the next round its window.
  void reduce(Instant now, Duration rtt, double factor, Reason why) {
    if (!reactions_.may_react(now)) return;
    threshold_ = std::max(blocks_ * factor, kMinThreshold);
    blocks_ = std::min(blocks_, threshold_);
    reactions_.reacted(now, rtt, why);
  }

  void on_loss(const LossEvent& event, double factor) {
    if (event.why == LossEvent::Why::kSilence) {
      collapse(event.now, event.smoothed_rtt, factor);
    } else if (event.lost_blocks > 0 && reactions_.is_news(event)) {
      reduce(event.now, event.smoothed_rtt, factor, Reason::kLoss);
    }
  }

  double blocks() const { return blocks_; }
  const Stats& stats() const { return reactions_.stats(); }

 private:
  /// A retransmission timeout: RFC 5681 section 3.1, equation 4. The threshold stays if nothing has
  /// come since the last timeout.
  void collapse(Instant now, Duration rtt, double factor) {
    if (!reactions_.may_react(now)) return;
    if (blocks_ > kLossWindow) threshold_ = std::max(blocks_ * factor, kMinThreshold);
    blocks_ = kLossWindow;
    reactions_.reacted(now, rtt, Reason::kSilence);
  }

  double blocks_ = kInitialWindow;
  double threshold_ = kMaxWindow;
  double gain_ = 1;
  RestClock rest_;
  Reactions reactions_;
};

}  // namespace gradplane::congestion
