// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "dataplane/base/time.h"
#include "dataplane/congestion/controller.h"

namespace gradplane::congestion {

/// What a controller knows of its path before the first packet.
struct Path {
  std::uint64_t link_bits_per_second = 0;  // this sender's share of the peer's link; 0: not known
  std::size_t block_wire_bytes = 1500;

  double blocks_per_second(double bits_per_second) const {
    return bits_per_second / 8 / static_cast<double>(block_wire_bytes);
  }
  double bits_per_second(double blocks_per_second) const {
    return blocks_per_second * 8 * static_cast<double>(block_wire_bytes);
  }
};

/// The longest time for which a peer usually holds an ack back. Towards a Delay controller that
/// knows the rate of its link it may be hop::kMaxSteadyAckDelay. The ack states how long it was
/// held back, and round trips exclude this time.
inline constexpr Duration kAckHolding = Duration::ms(4);

/// The time beyond a round trip that the window of a paced flow covers: for acks that are held
/// back, and for a busy processor. A paced flow cannot fill a queue by itself.
inline constexpr Duration kPacedPatience = Duration::ms(10);
static_assert(kAckHolding < kPacedPatience);
/// The window of a controller that limits by a rate: what the rate sends in a round trip and
/// kPacedPatience. With the rate alone, a dead path could take blocks without end (Li et al., HPCC,
/// SIGCOMM 2019, add such a window to DCQCN).
inline constexpr double kMinPacedWindow = 2;

inline double window_of_rate(double blocks_per_second, Duration rtt) {
  return std::clamp(blocks_per_second * (rtt + kPacedPatience).to_seconds(), kMinPacedWindow,
                    kMaxWindow);
}

/// A rate for a decision. It is never 0, because 0 would mean no limit at all.
inline std::uint64_t pacing_of(double bits_per_second) {
  return static_cast<std::uint64_t>(std::max(bits_per_second, 1.0));
}

}  // namespace gradplane::congestion
