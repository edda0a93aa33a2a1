// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <span>

#include "dataplane/base/time.h"

namespace gradplane::client {

inline Instant monotonic_now() noexcept {
  const auto since_epoch = std::chrono::steady_clock::now().time_since_epoch();
  return Instant::from_ns(
      std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count());
}

/// Calls poll() for at most `bound`, rounded up to a millisecond. Returns what poll() returns; a
/// signal ends it.
inline int poll_for(std::span<pollfd> descriptors, Duration bound) noexcept {
  constexpr Duration kLongest = Duration::seconds(3600);
  const Duration wait = std::clamp(bound, Duration(), kLongest);
  const auto wait_ms = static_cast<int>((wait.count_ns() + 999999) / 1000000);
  return ::poll(descriptors.data(), descriptors.size(), wait_ms);
}

}  // namespace gradplane::client
