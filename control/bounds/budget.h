// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gradplane::bounds {

/// A tensor's claim on a budget: its bound is to be proportional to `weight` (>= 0, finite).
struct Claim {
  double elements = 0;
  double weight = 0;
};

/// The bounds b = min(kMaxBound, c w) with the factor c for which the sum of elements x b is
/// `budget` (0..kMaxBound) times the sum of all elements. When even the bound kMaxBound for
/// everyone with a weight does not use up the budget, they all have it.
std::vector<float> share_out(std::span<const Claim> claims, double budget);

}  // namespace gradplane::bounds
