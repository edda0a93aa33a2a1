// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <vector>

namespace gradplane::plan {

/// What a tree that carries everything would take of one resource, in seconds per bit.
struct Load {
  std::uint32_t resource = 0;
  double s_per_bit = 0;
};

/// How several trees share the blocks so that the resource that takes longest takes least.
struct Shares {
  std::vector<double> of_tree;  // sum 1
  double s_per_bit = 0;         // of the resource that takes longest
};

/// The best shares of the given trees, each of which loads something: the linear program that
/// maximises the sum of the trees' rates while no resource has more than it carries. It is solved
/// by the simplex method, exactly but for rounding. The time grows as resources x trees^2.
Shares min_max_shares(const std::vector<std::vector<Load>>& trees, std::size_t resources);

}  // namespace gradplane::plan
