// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "tests/sim/cluster.h"
#include "tests/sim/dice.h"

namespace gradplane::sim {

/// How much a scenario does: one of many nodes does less.
struct DrawSize {
  std::uint32_t uses = 0;  // of a bucket; what Coding must hold
  std::uint32_t most_blocks = 0;
  std::uint32_t fewest_steps = 0;
  std::uint32_t most_steps = 0;      // fewer than uses, because a closing round follows
  std::uint32_t exact_elements = 0;  // of rounds without a bucket
};

/// What the rounds of the scenario's ranks may lack, and what becomes of it.
void draw_buckets(Dice& dice, Scenario& scenario, const DrawSize& size);

/// Steps of a training: every bucket once in most of them, exact rounds in between, and at the end
/// the closing ones.
void draw_rounds(Dice& dice, Scenario& scenario, const DrawSize& size);

}  // namespace gradplane::sim
