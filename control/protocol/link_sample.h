// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

namespace gradplane::protocol {

/// 10 Tbit/s. A higher rate is a mistake in a measurement, or a lie.
inline constexpr std::uint64_t kMaxLinkBitsPerSecond = 10'000'000'000'000;
inline constexpr std::uint32_t kMaxLinkRttUs = 10'000'000;
inline constexpr std::uint32_t kMaxLinkLossPpm = 1'000'000;
inline constexpr std::uint8_t kFullConfidence = 100;
/// An hour. Receivers forget their samples long before.
inline constexpr std::uint32_t kMaxLinkAgeMs = 3'600'000;

/// What the node `to` has measured of the directed link from the node `from` to itself. Each of the
/// three values has an age and a confidence in percent. A value that is not known has confidence 0,
/// and a round trip that is not known is 0.
struct LinkSample {
  std::uint16_t from = 0;
  std::uint16_t to = 0;
  std::uint64_t bits_per_s = 0;
  bool is_lower_bound = false;  // the link was not filled, and may be faster
  std::uint8_t rate_confidence = 0;
  std::uint32_t rate_age_ms = 0;
  std::uint32_t rtt_us = 0;
  std::uint32_t rtt_age_ms = 0;
  std::uint32_t loss_ppm = 0;
  std::uint8_t loss_confidence = 0;
  std::uint32_t loss_age_ms = 0;
  bool operator==(const LinkSample&) const = default;
};

}  // namespace gradplane::protocol
