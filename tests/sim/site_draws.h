// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>

#include "control/plan/network.h"
#include "tests/sim/dice.h"

namespace gradplane::sim {

/// Draws one site, a chain, a tree, more links than a tree has, or only accesses.
plan::Network draw_sites(Dice& dice, std::size_t nodes);

/// Draws other rates. A link may fail or come back if both of its sites have another link.
plan::Network redraw_sites(Dice& dice, plan::Network network);

}  // namespace gradplane::sim
