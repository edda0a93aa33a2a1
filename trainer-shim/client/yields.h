// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "dataplane/base/time.h"

namespace gradplane::client {

/// Whether a rank that waits for its daemon may give its processor away between two looks, instead
/// of going to sleep. It costs less than to sleep and to be woken, as long as only threads want the
/// processor that soon wait, too. One that computes keeps it for some milliseconds, and gets none
/// of it from a sleeper who is woken. So after such a one ranks sleep for a while. Pure.
class Yields {
 public:
  /// So long may one wait last before the rank goes to sleep.
  static constexpr Duration kLimit = Duration::us(50);
  /// A poll loop has the processor for less at a time.
  static constexpr Duration kLong = Duration::us(500);
  /// What computes makes a rank late by a slice of the scheduler, some 4 ms, once in so long.
  static constexpr Duration kPause = Duration::ms(200);

  bool may_yield(Instant now) const { return now >= not_before_; }
  void on_yield(Instant from, Instant to) {
    if (to - from > kLong) not_before_ = to + kPause;
  }

 private:
  Instant not_before_;
};

}  // namespace gradplane::client
