// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/congestion/controller.h"

namespace gradplane::hop {

/// A packet that was overtaken by this many or more from the same sender is refused.
inline constexpr std::uint64_t kReplayWindow = 4096;
static_assert(static_cast<double>(kReplayWindow) >= congestion::kMaxWindow,
              "a block may be overtaken by all that its flow may have in flight");

/// The packet numbers of one peer in one job; each is accepted once. Numbers have 64 bits and begin
/// at 1, and packets carry the low half. Only a packet whose tag was verified with the restored
/// number may be passed to accept(), so that nobody without the key can move the window.
class ReplayWindow {
 public:
  /// The number with this low half that is nearest to the newest.
  std::uint64_t restore(std::uint32_t low) const {
    constexpr std::uint64_t kSpan = std::uint64_t{1} << 32;
    constexpr std::uint64_t kHalf = kSpan / 2;
    const std::uint64_t number = (newest_ & ~(kSpan - 1)) | low;
    if (number + kHalf < newest_) return number + kSpan;
    if (number > newest_ + kHalf && number >= kSpan) return number - kSpan;
    return number;
  }

  /// Whether numbers before this one have not come.
  bool leaves_gap(std::uint64_t number) const { return number > newest_ + 1; }

  /// False if the number came before, or is too old to tell.
  [[nodiscard]] bool accept(std::uint64_t number) {
    if (number > newest_) {
      forget_until(number);
      newest_ = number;
    } else if (number == 0 || newest_ - number >= kReplayWindow || is_set(number)) {
      return false;
    }
    word_of(number) |= bit_of(number);
    return true;
  }

 private:
  static constexpr std::uint64_t kWordBits = 64;
  static_assert(kReplayWindow % kWordBits == 0);

  static std::uint64_t bit_of(std::uint64_t number) {
    return std::uint64_t{1} << (number % kWordBits);
  }
  std::uint64_t& word_of(std::uint64_t number) { return seen_[number / kWordBits % seen_.size()]; }
  bool is_set(std::uint64_t number) { return (word_of(number) & bit_of(number)) != 0; }

  /// Clears the bits of the numbers between the newest and `number`. They have not come, and their
  /// places hold older numbers.
  void forget_until(std::uint64_t number) {
    if (number - newest_ >= kReplayWindow) {
      seen_.fill(0);
      return;
    }
    std::uint64_t at = newest_ + 1;
    while (at < number) {
      if (at % kWordBits == 0 && number - at >= kWordBits) {
        word_of(at) = 0;
        at += kWordBits;
      } else {
        word_of(at) &= ~bit_of(at);
        ++at;
      }
    }
  }

  std::uint64_t newest_ = 0;
  std::array<std::uint64_t, kReplayWindow / kWordBits> seen_{};  // bit n % kReplayWindow
};

}  // namespace gradplane::hop
