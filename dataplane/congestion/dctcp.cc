// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/congestion/dctcp.h"

namespace gradplane::congestion {
namespace {

/// RFC 8257 section 4.2: g, the weight of a new observation.
constexpr double kWeight = 1.0 / 16;
/// RFC 8257 section 3.5: a loss counts as in Reno.
constexpr double kLossReduction = 0.5;

}  // namespace

void Dctcp::on_sent(Instant now, std::uint32_t /*wire_bytes*/, std::uint32_t in_flight_blocks) {
  window_.on_sent(now, in_flight_blocks);
}

/// RFC 8257 section 3.3, steps 1 to 7: a window of data is the data acked in a round trip.
void Dctcp::observe(const AckEvent& event) {
  if (!observing_) {
    observing_ = true;
    observed_until_ = event.now + std::max(event.smoothed_rtt, kShortestRoundTrip);
  }
  acked_ += event.acked_blocks;
  marked_ += event.marked_blocks;
  if (event.now < observed_until_ || acked_ == 0) return;
  // Copies and duplicates are marked too, but never acked.
  const double share = std::min(1.0, static_cast<double>(marked_) / static_cast<double>(acked_));
  alpha_ = alpha_ * (1 - kWeight) + kWeight * share;
  acked_ = marked_ = 0;
  observed_until_ = event.now + std::max(event.smoothed_rtt, kShortestRoundTrip);
}

void Dctcp::on_ack(const AckEvent& event) {
  observe(event);
  // RFC 8257 section 3.3, step 8: once per window of data.
  if (event.marked_blocks > 0) {
    window_.reduce(event.now, event.smoothed_rtt, 1 - alpha_ / 2, Reason::kMark);
  }
  window_.grow(event);
}

void Dctcp::on_loss(const LossEvent& event) {
  window_.on_loss(event, kLossReduction);
}

Decision Dctcp::decide(Instant /*now*/) const {
  return {.window_blocks = window_.blocks(), .pacing_bits_per_second = 0};
}

}  // namespace gradplane::congestion
