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

/// The bounds b = min(kMaxBound, c w). The factor c is chosen so that the sum of elements x b is
/// `budget` (0..kMaxBound) times the sum of all elements. When the budget is larger than all claims
/// together can use, each claim with a weight above 0 has the bound kMaxBound.
std::vector<float> share_out(std::span<const Claim> claims, double budget);

}  // namespace gradplane::bounds
