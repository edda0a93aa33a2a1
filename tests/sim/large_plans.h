// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "dataplane/api/plan.h"
#include "tests/sim/dice.h"

namespace gradplane::sim {

/// Draws a plan of up to 200 nodes, whose trees have up to 5 levels.
api::Plan draw_large_plan(Dice& dice);

}  // namespace gradplane::sim
