// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

namespace gradplane::testing {

/// Distributions of iteration times, rescaled to a mean of 1 s. They replace the measured ones of
/// Li et al., PPoPP 2020, that the paper used.
enum class Workload : std::uint8_t { kLstm, kTransformer, kResnet };

struct ComputeSpread {
  double mean, deviation, least, most;  // in ms
};

/// A log-normal variable above `least`, cut off at `most`.
inline double drawn(const ComputeSpread& spread, double shift, std::mt19937_64& random) {
  const double mean = spread.mean - shift;
  const double variance = std::log1p(spread.deviation * spread.deviation / (mean * mean));
  std::lognormal_distribution<double> normal(std::log(mean) - variance / 2, std::sqrt(variance));
  return std::clamp(shift + normal(random), spread.least, spread.most) / spread.mean;
}

inline double compute_s(Workload workload, std::mt19937_64& random) {
  switch (workload) {
    case Workload::kLstm:
      return drawn({1235, 706, 201, 3410}, 0, random);
    case Workload::kTransformer:
      return drawn({475, 144, 179, 3482}, 0, random);
    case Workload::kResnet:
      return drawn({454, 116, 399, 1892}, 399, random);
  }
  return 1;
}

}  // namespace gradplane::testing
