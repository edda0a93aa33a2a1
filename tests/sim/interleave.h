// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/incast.h"

/// Jobs that compute and communicate in turns and share the receiver's downlink: how long their
/// iterations take, relative to those of the same job alone.
namespace gradplane::sim::interleave {

/// One job. Alone, it communicates for `share` of its period and computes for the rest.
struct Training {
  double period_s = 0.05;
  double share = 0.5;
  // The total that the scheduler is told for an iteration, relative to the real one.
  double stated_total = 1;
};

struct Setting {
  std::vector<Training> jobs;
  grants::GrantScheduler::Policy policy = grants::GrantScheduler::Policy::kFair;
  std::string contestant = "grants";  // what limits senders, by a name of contestant.h
  std::size_t mark_bytes = 0;         // ECN threshold of the downlink
  std::uint32_t iterations = 60;
  // Delay of each job's start from the one before, relative to its communication time.
  double offset = 0.01;
  double jitter = 0;  // standard deviation of the compute time, relative to it
  std::uint64_t link_bits_per_second = 1'000'000'000;
  /// Before the downlink. Senders send whole blocks, so a window of few blocks per sender cannot
  /// follow small differences between the policy's shares.
  std::size_t buffer_bytes = 256 << 10;
  std::uint64_t seed = 1;
};

struct Result {
  bool finished = false;
  std::uint64_t drops = 0;
  /// By job: the times of all iterations but the last, relative to the isolated time.
  std::vector<std::vector<double>> ratios;
  double mean = 0;
  double p99 = 0;
  double settled_mean = 0;  // over the last half of the iterations
  /// The first iteration from which ten iterations of all jobs are within 2 % of the isolated time;
  /// -1: none.
  int converged_at = -1;
};
/// Runs only the scheduler and the controllers.
Result run(const Setting& setting);
/// Runs whole daemons: each job is a star with two workers, with pushes and results, and all jobs
/// are on the same three hosts. `contestant` may also be "shares": senders keep to even shares of
/// the link, without grants.
Result run_on_nodes(const Setting& setting);

/// `ratios`: each job's iteration times relative to its isolated time, in order.
Result summarize(const std::vector<std::vector<double>>& ratios);

/// One step of the theory: the gap between the starts of two equal jobs in an iteration and in the
/// next one. Both are relative to the time that the communication takes alone.
struct Step {
  double gap = 0;
  double next_gap = 0;
};
Step step(double gap, grants::GrantScheduler::Policy policy);

/// Shift(gap) = slope gap (1 - gap) / (intercept + slope gap), relative to the communication time
/// (MLTCP, HotNets 2024, equation 2).
double predicted_shift(double gap, double slope, double intercept);

}  // namespace gradplane::sim::interleave
