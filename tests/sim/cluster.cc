// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/cluster.h"

#include <algorithm>

#include "tests/sim/life.h"

namespace gradplane::sim {
namespace {

/// Starts the crashed daemon again.
void restart(Machines& machines, const Crash& crash, Instant crashed_at) {
  machines.now = std::max(machines.now, crashed_at + crash.restarts_after);
  machines.hosts[crash.host]->restart();
  machines.network.set_up(crash.host, true);
}

}  // namespace

void share_among_cores(Scenario& scenario, std::size_t cores) {
  const bool is_shared = !scenario.grants && scenario.plan.selections.empty() &&
                         scenario.tolerance.compensation != Compensation::kCarry;
  if (is_shared) scenario.cores = cores;
}

Outcome run(const Scenario& scenario) {
  Machines machines(scenario);
  Scenario part = scenario;
  hop::Counters counters;
  ToleranceTotals totals;
  std::uint32_t lost_jobs = 0;
  for (;;) {
    const Instant start = machines.now;
    Life life(machines, part);
    Outcome outcome = life.run();
    counters.add(outcome.counters);
    totals.add(outcome.tolerance);
    const bool goes_on = outcome.failure.empty() && life.is_lost();
    lost_jobs += life.is_lost() ? 1 : 0;
    outcome.counters = counters;
    outcome.tolerance = totals;
    outcome.lost_jobs = lost_jobs;
    if (!outcome.failure.empty() && lost_jobs > 0) {
      outcome.failure += "; jobs lost before: " + std::to_string(lost_jobs);
    }
    if (!goes_on || !part.crashes[0].restarts) return outcome;
    const Crash crash = part.crashes[0];
    Scenario next = after_crash(part, life.end_of_submitted());
    if (next.rounds.empty()) return outcome;
    restart(machines, crash, start + crash.after);
    part = std::move(next);
  }
}

}  // namespace gradplane::sim
