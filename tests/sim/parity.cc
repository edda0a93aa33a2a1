// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Parity for scenarios that were drawn without.
#include <algorithm>

#include "tests/sim/cluster.h"
#include "tests/sim/dice.h"

namespace gradplane::sim {

void add_parity(Scenario& s) {
  // Dice of their own, so that the rest of the scenario is what it is without parity.
  Dice dice(s.seed ^ 0x706172697479);
  s.parity_from = Duration{};
  const double loss = 0.01 * static_cast<double>(1 + dice.below(10));
  s.link.loss = std::max(s.link.loss, loss);
  // Most controllers have none. The others remain in the scenarios of an odd draw.
  if (dice.below(4) != 0) s.congestion = {};
}

}  // namespace gradplane::sim
