// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstdint>

namespace gradplane::awareness {

/// Counts are halved after this many packets.
inline constexpr std::uint64_t kLossMemory = 1024;
/// Below this many packets no share is reported.
inline constexpr std::uint64_t kLossEvidence = 32;
/// This part of a packet counts as lost in addition. A sender that has lost none of a few packets
/// may lose the next one; after some hundreds without loss, the share is almost 0.
inline constexpr double kLossDoubt = 0.5;

/// The share of a sender's last packets that have not come, by the gaps in their numbers. It gives
/// a rough share after few packets, while LossMeter waits for whole stretches.
class LossShare {
 public:
  /// The number of a packet that comes for the first time.
  void on_packet(std::uint64_t number) {
    if (newest_ == 0) newest_ = number - 1;
    if (number <= newest_) {  // it was overtaken, and had been counted as lost
      lost_ -= std::min<std::uint64_t>(lost_, 1);
      return;
    }
    sent_ += number - newest_;
    lost_ += number - newest_ - 1;
    newest_ = number;
    if (sent_ < kLossMemory) return;
    lost_ = lost_ * kLossMemory / sent_ / 2;
    sent_ = kLossMemory / 2;
  }
  double share() const {
    if (sent_ < kLossEvidence) return 0;
    return (static_cast<double>(lost_) + kLossDoubt) / static_cast<double>(sent_);
  }

 private:
  std::uint64_t newest_ = 0;  // newest number; 0: nothing has come
  std::uint64_t sent_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace gradplane::awareness
