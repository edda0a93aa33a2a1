// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/congestion/fixed.h"

namespace gradplane::congestion {

Fixed::Fixed(Path path, std::uint64_t rate_bits_per_second)
    : path_(path),
      follows_link_(rate_bits_per_second == 0),
      rate_(rate_bits_per_second > 0 ? rate_bits_per_second : path.link_bits_per_second) {}

void Fixed::on_ack(const AckEvent& event) {
  if (event.smoothed_rtt > Duration()) rtt_ = event.smoothed_rtt;
}

Decision Fixed::decide(Instant /*now*/) const {
  if (rate_ == 0) return {.window_blocks = kMaxWindow, .pacing_bits_per_second = 0};
  const double blocks_per_second = path_.blocks_per_second(static_cast<double>(rate_));
  return {.window_blocks = window_of_rate(blocks_per_second, rtt_),
          .pacing_bits_per_second = rate_};
}

}  // namespace gradplane::congestion
