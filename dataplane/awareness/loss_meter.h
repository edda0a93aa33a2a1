// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

namespace gradplane::awareness {

/// Packets are counted in stretches of so many numbers.
inline constexpr std::uint64_t kLossStretch = 512;
/// A stretch waits for packets that were overtaken by so many.
inline constexpr std::uint64_t kLossPatience = 128;
static_assert(kLossPatience < kLossStretch, "a stretch ends before the next but one begins");

/// What became of a number of packets.
struct LossCount {
  std::uint64_t sent = 0;  // 0: no stretch has ended
  std::uint64_t lost = 0;
};

/// Counts which packets of one sender in one job never came, by the gaps in their numbers. Packets
/// of all types count, also those that are repeated: each has a number of its own. So this is the
/// loss of the direction from the sender alone. An ack, which may be lost itself, has no part in
/// it.
class LossMeter {
 public:
  /// The number of a packet that ReplayWindow has accepted, so each comes once.
  LossCount on_packet(std::uint64_t number) {
    const std::uint64_t in_stretch = number - begin_;
    if (begin_ == 0 || in_stretch >= kLossStretch) return on_other(number);
    ++here_;
    return {};
  }

 private:
  LossCount on_other(std::uint64_t number);

  std::uint64_t begin_ = 0;  // of the stretch; 0: nothing has come
  std::uint64_t here_ = 0;   // packets that came of it
  std::uint64_t next_ = 0;   // packets that came of the next stretch
};

}  // namespace gradplane::awareness
