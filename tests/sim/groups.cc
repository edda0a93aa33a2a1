// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Switches that copy for groups always, never, or at some times.
#include "tests/sim/cluster.h"
#include "tests/sim/dice.h"

namespace gradplane::sim {

void add_groups(Scenario& s) {
  // A separate random generator, so that the rest of the scenario is the same as without groups.
  Dice dice(s.seed ^ 0x67726f757073);
  s.multicast = true;
  const auto deaf = static_cast<std::uint16_t>(dice.below(s.plan.members.size()));
  const auto period = Duration::ms(static_cast<std::int64_t>(1 + dice.below(40)));
  switch (dice.below(4)) {
    case 0:
      return;
    case 1:
      s.link.copies_for = [deaf](std::uint16_t to, Instant) { return to != deaf; };
      return;
    case 2:  // copies for all hosts, half of the time
      s.link.copies_for = [period](std::uint16_t, Instant now) {
        return now.count_ns() / period.count_ns() % 2 == 0;
      };
      return;
    default:  // copies for all but one host always, and for that one half of the time
      s.link.copies_for = [deaf, period](std::uint16_t to, Instant now) {
        return to != deaf || now.count_ns() / period.count_ns() % 2 == 0;
      };
  }
}

}  // namespace gradplane::sim
