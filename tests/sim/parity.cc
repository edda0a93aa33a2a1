// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Adds parity to scenarios.
#include <algorithm>

#include "tests/sim/cluster.h"
#include "tests/sim/dice.h"

namespace gradplane::sim {

void add_parity(Scenario& s) {
  // A separate random generator, so that the rest of the scenario is the same as without parity.
  Dice dice(s.seed ^ 0x706172697479);
  s.parity_from = Duration{};
  const double loss = 0.01 * static_cast<double>(1 + dice.below(10));
  s.link.loss = std::max(s.link.loss, loss);
  // The default controller in most scenarios; the others keep the controller that was drawn.
  if (dice.below(4) != 0) s.congestion = {};
}

}  // namespace gradplane::sim
