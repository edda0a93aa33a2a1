// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstdint>

#include "dataplane/base/time.h"

namespace gradplane::client {

/// A daemon whose beat has not changed for so long is dead or stopped.
inline constexpr Duration kLivenessLimit = Duration::seconds(5);
/// No wait is longer than this, so that the beat is checked.
inline constexpr Duration kWaitSlice = Duration::seconds(1);
/// The smallest limit that a caller may choose, because a live daemon may miss a beat.
inline constexpr Duration kMinLivenessLimit = Duration::seconds(2);
static_assert(kMinLivenessLimit >= kWaitSlice * 2 && kMinLivenessLimit <= kLivenessLimit);
static_assert(kWaitSlice * 4 <= kLivenessLimit, "a beat per second survives a late look");

/// Watches the beat of a daemon. The time between two looks counts as at most one kWaitSlice. While
/// the rank did not look, because the trainer computed or both processes were stopped, it may have
/// missed a beat.
class Liveness {
 public:
  /// A `limit` of zero means kLivenessLimit.
  Liveness(std::uint64_t beat, Instant now, Duration limit = {}) noexcept
      : beat_(beat),
        last_look_(now),
        limit_(limit > Duration() ? std::max(limit, kMinLivenessLimit) : kLivenessLimit) {}

  Duration limit() const noexcept { return limit_; }

  /// Looks at the beat once. Returns whether the daemon lives.
  bool look(std::uint64_t beat, Instant now) noexcept {
    const Duration watched = std::min(now - last_look_, kWaitSlice);
    last_look_ = now;
    if (beat != beat_) {
      beat_ = beat;
      still_ = Duration();
    } else {
      still_ += watched;
    }
    return still_ < limit_;
  }

 private:
  std::uint64_t beat_;
  Instant last_look_;
  Duration still_;
  Duration limit_;
};

}  // namespace gradplane::client
