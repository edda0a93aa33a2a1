// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "dataplane/base/time.h"

namespace gradplane::client {

/// Whether a rank that waits for its daemon may yield its CPU between two looks, instead of going
/// to sleep. Yielding costs less than sleeping and being woken, as long as the other threads of the
/// CPU also wait soon. But a thread that computes would keep the CPU for some milliseconds, while a
/// thread that is woken gets it at once. So after a long yield a rank sleeps for a while. Pure.
class Yields {
 public:
  /// The longest time of yielding before the rank goes to sleep.
  static constexpr Duration kLimit = Duration::us(50);
  /// A longer yield means that another thread computes; a poll loop runs for less time at once.
  static constexpr Duration kLong = Duration::us(500);
  /// How long a rank does not yield after a long yield. So a thread that computes delays it only
  /// once in this time, by a slice of the scheduler, some 4 ms.
  static constexpr Duration kPause = Duration::ms(200);

  bool may_yield(Instant now) const { return now >= not_before_; }
  void on_yield(Instant from, Instant to) {
    if (to - from > kLong) not_before_ = to + kPause;
  }

 private:
  Instant not_before_;
};

}  // namespace gradplane::client
