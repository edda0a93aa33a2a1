// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "control/daemon/placement.h"
#include "tests/sim/redrawn.h"

namespace gradplane::sim {

std::string_view misfortune_name(Misfortune misfortune) {
  constexpr std::array<std::string_view, kMisfortunes> kNames = {"dies", "restarts", "pauses",
                                                                 "is cut off"};
  return kNames[static_cast<std::size_t>(misfortune)];
}

void RedrawnTotals::add(const RedrawnTotals& other) {
  runs += other.runs;
  redraws += other.redraws;
  unstruck += other.unstruck;
  takeovers += other.takeovers;
  redraws_after_takeover += other.redraws_after_takeover;
  relayed += other.relayed;
  late += other.late;
  tolerance.add(other.tolerance);
  longest_before = std::max(longest_before, other.longest_before);
  for (std::size_t p = 0; p < kSwitchPhases; ++p)
    longest_after[p] = std::max(longest_after[p], other.longest_after[p]);
  for (std::size_t p = 0; p < kSwitchPhases; ++p)
    for (std::size_t m = 0; m < kMisfortunes; ++m) struck[p][m] += other.struck[p][m];
}

namespace {

/// From so many seeds on, a run must have shown every phase and every misfortune.
constexpr std::uint64_t kShowAll = 100;

void print_seed(std::uint64_t seed, const RedrawnOutcome& o) {
  std::printf("seed %" PRIu64 ": %.3f s, %zu rounds, %zu redraws, %" PRIu64 " packets, %" PRIu64
              " control datagrams\n",
              seed, (o.ended - Instant()).to_seconds(), o.round_ends.size(), o.switches.size(),
              o.packets, o.control.datagrams);
}

/// Whether rounds of buckets closed for every reason, and missing elements came later.
bool shows_losses(const ToleranceTotals& t) {
  std::printf("  rounds of buckets: %" PRIu64 " full, %" PRIu64 " early, %" PRIu64
              " at the deadline, %" PRIu64 " without an absent host; %" PRIu64
              " missing blocks, %" PRIu64 " elements came later\n",
              t.at(CloseReason::kFull), t.at(CloseReason::kEarly), t.at(CloseReason::kDeadline),
              t.at(CloseReason::kAbsent), t.missing_blocks, t.carried_elements);
  return t.at(CloseReason::kEarly) > 0 && t.at(CloseReason::kDeadline) > 0 &&
         t.at(CloseReason::kAbsent) > 0 && t.missing_blocks > 0 && t.carried_elements > 0;
}

/// Prints the totals. Returns whether every kind of event has happened.
bool shows_all(const RedrawnTotals& t) {
  std::printf("%" PRIu64 " runs, %" PRIu64 " redraws, %" PRIu64
              " of them by another coordinator than the first, %" PRIu64
              " runs ended under one, %" PRIu64 " with a node that had started later, %" PRIu64
              " blocks relayed\n",
              t.runs, t.redraws, t.redraws_after_takeover, t.takeovers, t.late, t.relayed);
  bool all = t.redraws >= t.runs && t.redraws_after_takeover > 0 && t.takeovers > 0 &&
             t.relayed > 0 && t.late > 0;
  std::array<std::uint64_t, kMisfortunes> of_misfortune{};
  all = shows_losses(t.tolerance) && all;
  std::printf("  before that: %.2f s without a round\n", t.longest_before.to_seconds());
  for (std::size_t p = 0; p < kSwitchPhases; ++p) {
    std::uint64_t of_phase = 0;
    std::printf("  coordinator, %s:",
                std::string(switch_phase_name(static_cast<SwitchPhase>(p))).c_str());
    for (std::size_t m = 0; m < kMisfortunes; ++m) {
      std::printf(" %s %" PRIu64, std::string(misfortune_name(static_cast<Misfortune>(m))).c_str(),
                  t.struck[p][m]);
      of_phase += t.struck[p][m];
      of_misfortune[m] += t.struck[p][m];
    }
    all = all && of_phase > 0;
    std::printf(", %.2f s without a round\n", t.longest_after[p].to_seconds());
  }
  for (const std::uint64_t count : of_misfortune) all = all && count > 0;
  if (t.runs < kShowAll) return true;
  if (!all) std::printf("one of these never happened: the seeds do not show what they should\n");
  return all;
}

}  // namespace

int run_redrawn_seeds(const Seeds& seeds, const char* program) {
  RedrawnTotals totals;
  std::uint64_t failed = 0;
  for (const std::uint64_t begin : seeds.first) {
    for (std::uint64_t seed = begin; seed < begin + seeds.count; ++seed) {
      RedrawnScenario scenario = random_redrawn_scenario(seed);
      for (std::uint32_t c = 0; seeds.cores > 1 && c < seeds.cores; ++c)
        scenario.config.poll.cores.push_back(c);
      scenario.base.cores = daemon::placement_of(scenario.config, scenario.base.job).count;
      const RedrawnOutcome outcome = run(scenario);
      totals.add(outcome.totals);
      if (seeds.verbose) print_seed(seed, outcome);
      if (outcome.failure.empty()) continue;
      ++failed;
      std::printf("seed %" PRIu64 " failed: %s\n  replay: %s %s--seed %" PRIu64
                  " --verbose; GRADPLANE_LOG=1 shows what every node said\n",
                  seed, outcome.failure.c_str(), program, flags_of(seeds).c_str(), seed);
      std::fflush(stdout);
      if (seeds.stop) return 1;
    }
  }
  const bool shown = shows_all(totals);
  std::printf("%" PRIu64 " passed, %" PRIu64 " failed\n", totals.runs - failed, failed);
  return failed == 0 && shown ? 0 : 1;
}

}  // namespace gradplane::sim
