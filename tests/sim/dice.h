// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <random>

#include "dataplane/base/time.h"
#include "dataplane/model/congestion_settings.h"

namespace gradplane::sim {

/// Draws the random choices of a scenario.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool coin() { return below(2) == 0; }
  /// Uniform, with a resolution of a microsecond.
  Duration between(Duration least, Duration most) {
    const auto span = static_cast<std::uint64_t>((most - least).count_ns() / 1000) + 1;
    return least + Duration::us(static_cast<std::int64_t>(below(span)));
  }
  /// Zero half of the time, so that each fault also occurs without the others.
  double maybe(double max) {
    return coin() ? 0 : std::uniform_real_distribution<>(0, max)(random_);
  }

  /// The default controller half of the time, otherwise any controller. Some have MLTCP.
  CongestionSettings congestion() {
    CongestionSettings settings;
    if (coin()) return settings;
    settings.controller = static_cast<ControllerKind>(below(kControllerNames.size()));
    settings.rate_bits_per_second = 50'000'000 * (1 + below(20));
    if (coin()) settings.mltcp.emplace();
    return settings;
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace gradplane::sim
