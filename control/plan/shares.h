// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <vector>

namespace gradplane::plan {

/// The load of a tree on one resource if the tree carried all blocks.
struct Load {
  std::uint32_t resource = 0;
  double s_per_bit = 0;
};

/// Shares of the blocks for several trees.
struct Shares {
  std::vector<double> of_tree;  // sum 1
  double s_per_bit = 0;         // of the resource that takes longest
};

/// The shares with which the resource that takes longest takes the least time. They solve the
/// linear program that maximises the sum of the trees' rates while no resource is overloaded, by
/// the simplex method, so they are exact but for rounding. Each tree loads something. The time
/// grows as resources x trees^2.
Shares min_max_shares(const std::vector<std::vector<Load>>& trees, std::size_t resources);

}  // namespace gradplane::plan
