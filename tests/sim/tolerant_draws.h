// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "tests/sim/cluster.h"
#include "tests/sim/dice.h"

namespace gradplane::sim {

/// The size of a scenario. Scenarios with many nodes are smaller.
struct DrawSize {
  std::uint32_t uses = 0;  // rounds of a bucket; Coding must represent so many
  std::uint32_t most_blocks = 0;
  std::uint32_t fewest_steps = 0;
  std::uint32_t most_steps = 0;      // less than uses, because a closing round follows
  std::uint32_t exact_elements = 0;  // of a round without a bucket
};

/// Draws the buckets, what may be missing from them, and the compensation.
void draw_buckets(Dice& dice, Scenario& scenario, const DrawSize& size);

/// Draws the steps of a training. Most steps have one round of every bucket. Exact rounds are in
/// between, and the closing rounds at the end.
void draw_rounds(Dice& dice, Scenario& scenario, const DrawSize& size);

}  // namespace gradplane::sim
