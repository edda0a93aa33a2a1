// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

namespace gradplane::awareness {

/// Packets are counted in stretches of this many numbers.
inline constexpr std::uint64_t kLossStretch = 512;
/// A stretch stays open until this many numbers after it, for packets that were overtaken.
inline constexpr std::uint64_t kLossPatience = 128;
static_assert(kLossPatience < kLossStretch, "a stretch ends before the next but one begins");

/// How many packets were sent, and how many of them were lost.
struct LossCount {
  std::uint64_t sent = 0;  // 0: no stretch has ended
  std::uint64_t lost = 0;
};

/// Counts the packets of one sender in one job that never came, by the gaps in their numbers.
/// Packets of all types count, and so do repeated ones, because each has its own number. The loss
/// concerns only the direction from the sender: acks, which may be lost themselves, play no part.
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

  std::uint64_t begin_ = 0;  // first number of the stretch; 0: nothing has come
  std::uint64_t here_ = 0;   // packets of the stretch that came
  std::uint64_t next_ = 0;   // packets of the next stretch that came
};

}  // namespace gradplane::awareness
