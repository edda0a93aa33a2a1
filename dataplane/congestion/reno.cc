// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/congestion/reno.h"

namespace gradplane::congestion {
namespace {

/// RFC 5681 equation 4.
constexpr double kReduction = 0.5;

}  // namespace

void Reno::on_sent(Instant now, std::uint32_t /*wire_bytes*/, std::uint32_t in_flight_blocks) {
  window_.on_sent(now, in_flight_blocks);
}

void Reno::on_ack(const AckEvent& event) {
  if (event.marked_blocks > 0)
    window_.reduce(event.now, event.smoothed_rtt, kReduction, Reason::kMark);
  window_.grow(event);
}

void Reno::on_loss(const LossEvent& event) {
  window_.on_loss(event, kReduction);
}

Decision Reno::decide(Instant /*now*/) const {
  return {.window_blocks = window_.blocks(), .pacing_bits_per_second = 0};
}

}  // namespace gradplane::congestion
