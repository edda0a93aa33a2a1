// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/bounds/learn.h"

#include <algorithm>
#include <cmath>

#include "control/bounds/budget.h"

namespace gradplane::bounds {
namespace {

/// The smallest variance that counts, as a share of the signal. Below it all ranks agree, and what
/// is left of the variance is rounding.
constexpr double kMinNoise = 1e-6;

/// m / v, from 0 to 1 / kMinNoise.
double signal_to_noise(const TensorNoise& tensor, double ranks) {
  if (!std::isfinite(tensor.part_energy) || !std::isfinite(tensor.sum_energy)) return 0;
  const double signal = tensor.sum_energy / (ranks * ranks);
  if (signal <= 0 || tensor.part_energy <= 0) return 0;
  const double variance = std::max(tensor.part_energy / ranks - signal, kMinNoise * signal);
  return signal / variance;
}

}  // namespace

std::vector<float> learn(std::span<const TensorNoise> tensors, std::uint32_t ranks, double budget) {
  std::vector<Claim> claims;
  for (const TensorNoise& tensor : tensors) {
    claims.push_back(
        {static_cast<double>(tensor.elements), ranks > 1 ? signal_to_noise(tensor, ranks) : 0.0});
  }
  return share_out(claims, budget);
}

}  // namespace gradplane::bounds
