// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/congestion/cubic.h"

#include <cmath>

namespace gradplane::congestion {
namespace {

/// RFC 9438 section 4.1.2 and 5.1: C in blocks / s^3; section 4.6: the factor of a reduction.
constexpr double kC = 0.4;
constexpr double kBeta = 0.7;
/// RFC 9438 section 4.3: alpha_cubic, so that Reno with beta_cubic gets what Reno gets.
constexpr double kRenoAlpha = 3 * (1 - kBeta) / (1 + kBeta);
/// RFC 9438 section 4.2: the target is at most this many windows.
constexpr double kMaxTarget = 1.5;

}  // namespace

double Cubic::cubic_window(Duration since) const {
  const double t = since.to_seconds() - k_seconds_;
  return kC * t * t * t + last_max_;
}

/// The clock of the curve stands still whenever the flow does not use its window (RFC 9438 section
/// 5.8; Linux does so at a restart).
void Cubic::stop_clock(Instant now) {
  epoch_ = epoch_ + (now - counted_until_);
  counted_until_ = now;
}

void Cubic::on_sent(Instant now, std::uint32_t /*wire_bytes*/, std::uint32_t in_flight_blocks) {
  if (in_flight_blocks == 0) stop_clock(now);
  if (!rest_.on_sent(now, in_flight_blocks) || blocks_ <= kInitialWindow) return;
  blocks_ = kInitialWindow;
  in_epoch_ = false;
  reactions_.set_reason(Reason::kIdle);
}

void Cubic::begin_epoch(Instant now) {
  in_epoch_ = true;
  epoch_ = now;
  // RFC 9438 section 4.2, equation 2.
  if (blocks_ < last_max_) {
    k_seconds_ = std::cbrt((last_max_ - blocks_) / kC);
  } else {
    k_seconds_ = 0;
    last_max_ = blocks_;
  }
  reno_blocks_ = blocks_;
}

/// RFC 9438 sections 4.3 to 4.5.
void Cubic::avoid(const AckEvent& event) {
  if (!in_epoch_) begin_epoch(event.now);
  const Duration since = event.now - epoch_;
  const double acked = event.acked_blocks;
  // Section 4.3, equation 4; alpha is 1 once the window is back where it was.
  const double alpha = reno_blocks_ < before_reduction_ ? kRenoAlpha : 1;
  reno_blocks_ = std::min(reno_blocks_ + gain_ * alpha * acked / blocks_, kMaxWindow);
  if (cubic_window(since) < reno_blocks_) {
    blocks_ = std::max(blocks_, reno_blocks_);
  } else {
    const double target =
        std::clamp(cubic_window(since + event.smoothed_rtt), blocks_, kMaxTarget * blocks_);
    // Grow at most to the target, however many blocks one ack reports.
    blocks_ += (target - blocks_) * std::min(gain_ * acked / blocks_, 1.0);
  }
  reactions_.set_reason(Reason::kGrowth);
}

void Cubic::on_ack(const AckEvent& event) {
  rest_.on_ack(event);
  if (event.marked_blocks > 0) reduce(event.now, event.smoothed_rtt, Reason::kMark);
  if (event.acked_blocks == 0) return;
  if (!window_is_used(event, blocks_)) return stop_clock(event.now);
  counted_until_ = event.now;
  if (!reactions_.may_react(event.now)) return;
  if (blocks_ < threshold_) {
    blocks_ = std::min(blocks_ + event.acked_blocks, threshold_);
  } else {
    avoid(event);
  }
  blocks_ = std::min(blocks_, kMaxWindow);
}

/// RFC 9438 sections 4.6 and 4.7, once per round trip.
void Cubic::reduce(Instant now, Duration rtt, Reason why) {
  if (!reactions_.may_react(now)) return;
  before_reduction_ = blocks_;
  // Fast convergence: a flow whose window did not get back to where it was leaves room for others.
  last_max_ = blocks_ < last_max_ ? blocks_ * (1 + kBeta) / 2 : blocks_;
  threshold_ = std::max(blocks_ * kBeta, kMinThreshold);
  blocks_ = std::min(blocks_, threshold_);
  in_epoch_ = false;
  reactions_.reacted(now, rtt, why);
}

void Cubic::on_loss(const LossEvent& event) {
  if (event.why == LossEvent::Why::kGap) {
    const bool counts = event.lost_blocks > 0 && reactions_.is_news(event);
    if (counts) reduce(event.now, event.smoothed_rtt, Reason::kLoss);
    return;
  }
  // RFC 9438 section 4.8: as in Reno, and the next curve begins where slow start ends. The
  // threshold stays if nothing has come since the last timeout (RFC 5681, 3.1).
  if (!reactions_.may_react(event.now) || blocks_ <= kLossWindow) return;
  reduce(event.now, event.smoothed_rtt, Reason::kSilence);
  blocks_ = kLossWindow;
  last_max_ = 0;
}

Decision Cubic::decide(Instant /*now*/) const {
  return {.window_blocks = blocks_, .pacing_bits_per_second = 0};
}

}  // namespace gradplane::congestion
