// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/incast.h"

/// Jobs that compute and communicate in turns and share the receiver's downlink: how long their
/// iterations are, over those of the same jobs alone.
namespace gradplane::sim::interleave {

/// One job. Its communication alone takes `share` of its period, and its computing the rest.
struct Training {
  double period_s = 0.05;
  double share = 0.5;
  double stated_total = 1;  // what the scheduler is told an iteration brings, over what it brings
};

struct Setting {
  std::vector<Training> jobs;
  grants::GrantScheduler::Policy policy = grants::GrantScheduler::Policy::kFair;
  std::string contestant = "grants";  // what limits senders, as contestant.h names it
  std::size_t mark_bytes = 0;         // ECN threshold of the downlink
  std::uint32_t iterations = 60;
  double offset = 0.01;  // each job starts this part of its communication after the one before
  double jitter = 0;     // standard deviation of the compute time, as a part of it
  std::uint64_t link_bits_per_second = 1'000'000'000;
  /// Before the downlink. Senders have whole blocks on their way, so that a window of few blocks
  /// for each cannot follow small differences of the policy's shares.
  std::size_t buffer_bytes = 256 << 10;
  std::uint64_t seed = 1;
};

struct Result {
  bool finished = false;
  std::uint64_t drops = 0;
  /// Of every job's iterations but its last, over the isolated time.
  std::vector<std::vector<double>> ratios;
  double mean = 0;
  double p99 = 0;
  double settled_mean = 0;  // of the last half of the iterations
  /// The first iteration from which on ten of all jobs are within 2 % of the isolated time; -1:
  /// never.
  int converged_at = -1;
};
/// Of the scheduler and the controllers alone.
Result run(const Setting& setting);
/// Of whole daemons: each job a star with two workers, push and pull, all on the same three hosts.
/// `contestant` may be "shares" too: senders that keep to even shares of the link, without grants.
Result run_on_nodes(const Setting& setting);

/// `ratios` of each job's iterations over its isolated time, in order.
Result summarize(const std::vector<std::vector<double>>& ratios);

/// One step of the theory: the gap between the starts of two alike jobs in an iteration, and in the
/// next, both as a part of the time that the communication takes alone.
struct Step {
  double gap = 0;
  double next_gap = 0;
};
Step step(double gap, grants::GrantScheduler::Policy policy);

/// Shift(gap) = slope gap (1 - gap) / (intercept + slope gap), in parts of the communication time
/// (MLTCP, HotNets 2024, equation 2).
double predicted_shift(double gap, double slope, double intercept);

}  // namespace gradplane::sim::interleave
