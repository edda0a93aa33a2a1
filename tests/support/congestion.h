// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "dataplane/congestion/factory.h"

namespace gradplane::testing {

inline constexpr std::uint32_t kBlockWireBytes = 1500;
inline constexpr std::uint64_t kLinkBitsPerSecond = 1'000'000'000;
inline constexpr Instant kControllerStart = Instant::from_ns(1'000'000'000);

inline std::unique_ptr<congestion::Controller> controller_of(
    ControllerKind kind, std::uint64_t link_bits_per_second = kLinkBitsPerSecond) {
  return congestion::make_controller(
      {.controller = kind, .rate_bits_per_second = 100'000'000, .mltcp = {}},
      {.link_bits_per_second = link_bits_per_second, .block_wire_bytes = kBlockWireBytes});
}

inline double window_of(const congestion::Controller& c, Instant now) {
  return c.decide(now).window_blocks;
}

/// Sends as many blocks as the window allows. One round trip later it acks them one by one, while
/// the sender fills the window again. Returns the time of the acks.
inline Instant round_trip(congestion::Controller& c, Instant now, Duration rtt, bool marked = false,
                          Duration min_rtt = {}) {
  const auto blocks = std::max(1U, static_cast<std::uint32_t>(window_of(c, now)));
  for (std::uint32_t n = 0; n < blocks; ++n) c.on_sent(now, kBlockWireBytes, n);
  now = now + rtt;
  c.on_tick(now);
  for (std::uint32_t n = 0; n < blocks; ++n) {
    c.on_ack({.now = now,
              .acked_blocks = 1,
              .in_flight_blocks = std::max(blocks, static_cast<std::uint32_t>(window_of(c, now))),
              .marked_blocks = marked ? 1U : 0U,
              .app_limited = false,
              .rtt = rtt,
              .smoothed_rtt = rtt,
              .min_rtt = min_rtt > Duration() ? min_rtt : rtt});
  }
  return now;
}

inline Instant round_trips(congestion::Controller& c, Instant now, Duration rtt, int count) {
  for (int n = 0; n < count; ++n) now = round_trip(c, now, rtt);
  return now;
}

/// Reports the loss of blocks that were sent a round trip ago, or at `sent`.
inline void lose(congestion::Controller& c, Instant now, Duration rtt, std::uint32_t blocks,
                 std::optional<Instant> sent = {}) {
  c.on_loss({.now = now,
             .why = congestion::LossEvent::Why::kGap,
             .lost_blocks = blocks,
             .newest_sent = sent.value_or(now - rtt),
             .smoothed_rtt = rtt});
}

inline void fall_silent(congestion::Controller& c, Instant now, Duration rtt) {
  c.on_loss({.now = now,
             .why = congestion::LossEvent::Why::kSilence,
             .lost_blocks = 0,
             .newest_sent = {},
             .smoothed_rtt = rtt});
}

}  // namespace gradplane::testing
