// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/torch/round_window.h"

#include <algorithm>

namespace gradplane::shim {

void RoundWindow::restart(std::uint32_t in_flight_max, std::uint64_t first) {
  rounds_.fill({});
  first_ = next_ = first_incomplete_ = first;
  in_flight_max_ = std::min(in_flight_max, static_cast<std::uint32_t>(kMaxInFlightRounds));
}

void RoundWindow::submit(const Round& round) {
  rounds_[next_++ % kRoundSlots] = round;
}

Round* RoundWindow::find(std::uint64_t round) {
  if (round < first_ || round >= next_ || next_ - round > kRoundSlots) return nullptr;
  return &rounds_[round % kRoundSlots];
}

bool RoundWindow::complete(std::uint64_t round) {
  Round* found = find(round);
  if (!found || found->completed || round < first_incomplete_) return false;
  found->completed = true;
  while (first_incomplete_ < next_ && rounds_[first_incomplete_ % kRoundSlots].completed) {
    ++first_incomplete_;
  }
  return true;
}

std::uint64_t RoundWindow::completed_bits() const {
  std::uint64_t bits = 0;
  for (std::uint64_t round = first_incomplete_; round < next_; ++round) {
    const bool completed = rounds_[round % kRoundSlots].completed;
    bits |= std::uint64_t{completed} << (round - first_incomplete_);
  }
  return bits;
}

}  // namespace gradplane::shim
