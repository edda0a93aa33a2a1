// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>

#include "control/plan/network.h"
#include "tests/sim/dice.h"

namespace gradplane::sim {

/// One site, a chain, a tree, more links than a tree, or accesses alone.
plan::Network draw_sites(Dice& dice, std::size_t nodes);

/// Other rates. A link may die, or live again, where both of its sites have another one.
plan::Network redraw_sites(Dice& dice, plan::Network network);

}  // namespace gradplane::sim
