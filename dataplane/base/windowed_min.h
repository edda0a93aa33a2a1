// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>

#include "dataplane/base/time.h"

namespace gradplane {

/// The minimum sample of the last one to two lifetimes. Old samples are forgotten, so it can grow
/// when a path becomes longer. One thread.
class WindowedMin {
 public:
  explicit constexpr WindowedMin(Duration lifetime) : lifetime_(lifetime) {}

  /// Adds a sample. `now` must never go back.
  void add(Duration sample, Instant now) {
    if (!known_) {
      known_ = true;
      least_ = next_ = sample;
      until_ = now + lifetime_;
      return;
    }
    least_ = std::min(least_, sample);
    next_ = std::min(next_, sample);
    if (now < until_) return;
    least_ = next_;
    next_ = sample;
    until_ = now + lifetime_;
  }

  /// The minimum; zero before the first sample.
  Duration value() const { return least_; }

 private:
  Duration lifetime_;
  bool known_ = false;
  Duration least_;
  Duration next_;  // minimum of the current lifetime
  Instant until_;
};

}  // namespace gradplane
