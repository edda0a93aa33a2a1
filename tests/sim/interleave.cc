// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/interleave.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "dataplane/base/assert.h"
#include "tests/sim/contestant.h"

namespace gradplane::sim::interleave {
namespace {

constexpr std::uint16_t kSendersOfJob = 2;
constexpr double kConverged = 0.02;
constexpr std::size_t kConvergedIterations = 10;

Duration from_seconds(double seconds) {
  return Duration::ns(static_cast<std::int64_t>(seconds * 1e9));
}

incast::Scenario network(const Setting& setting) {
  incast::Scenario s;
  s.seed = setting.seed;
  s.policy = setting.policy;
  s.mark_bytes = setting.mark_bytes;
  s.link_bits_per_second = setting.link_bits_per_second;
  s.delay = Duration::us(50);
  s.buffer_bytes = setting.buffer_bytes;
  s.paths_known = true;
  return s;
}

/// The number of blocks per sender with which the job's communication alone takes `share` of the
/// period.
std::uint32_t blocks_of(const Training& training, const incast::Scenario& s) {
  const double block_s = static_cast<double>(s.block_wire_bytes) * 8 /
                         (0.99 * static_cast<double>(s.link_bits_per_second));
  return static_cast<std::uint32_t>(training.period_s * training.share / block_s / kSendersOfJob);
}

void add_job(incast::Scenario& s, const Training& training, std::uint32_t iterations,
             double offset) {
  incast::Job job;
  job.blocks = blocks_of(training, s);
  job.iterations = iterations;
  job.compute = from_seconds(training.period_s * (1 - training.share));
  job.stated_total = training.stated_total;
  const auto before = static_cast<double>(s.jobs.size());
  job.start = Instant{} + from_seconds(training.period_s * training.share * offset * before);
  incast::Sender sender;
  sender.job = static_cast<std::uint16_t>(s.jobs.size());
  s.jobs.push_back(job);
  s.senders.insert(s.senders.end(), kSendersOfJob, sender);
}

incast::Outcome run_with(incast::Scenario& s, const Setting& setting) {
  GP_ASSERT(incast::choose(setting.contestant, s));
  return incast::run(s);
}

/// A job that runs alone: its time from start to start, and its communication time.
struct Alone {
  double iteration_s = 0;
  double communication_s = 0;
};
Alone alone(const Training& training, const Setting& setting) {
  incast::Scenario s = network(setting);
  add_job(s, training, 4, 0);
  const incast::Outcome o = run_with(s, setting);
  const std::vector<incast::Iteration>& i = o.iterations[0];
  return {.iteration_s = (i[3].start - i[1].start).to_seconds() / 2,
          .communication_s = (i[2].end - i[2].start).to_seconds()};
}

/// The first of ten iterations in a row in which all jobs are as fast as alone.
int converged_at(const std::vector<std::vector<double>>& ratios) {
  std::size_t common = SIZE_MAX;
  for (const std::vector<double>& job : ratios) common = std::min(common, job.size());
  for (std::size_t first = 0; first + kConvergedIterations <= common; ++first) {
    bool all = true;
    for (const std::vector<double>& job : ratios) {
      for (std::size_t i = first; i < first + kConvergedIterations; ++i) {
        all = all && std::abs(job[i] - 1) <= kConverged;
      }
    }
    if (all) return static_cast<int>(first);
  }
  return -1;
}

double mean_of(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

Result summarize(const std::vector<std::vector<double>>& ratios) {
  Result result;
  result.ratios = ratios;
  std::vector<double> sorted;
  std::vector<double> late;
  for (const std::vector<double>& job : ratios) {
    sorted.insert(sorted.end(), job.begin(), job.end());
    const auto half = static_cast<std::ptrdiff_t>((job.size() + 1) / 2);
    late.insert(late.end(), job.begin() + half, job.end());
  }
  std::sort(sorted.begin(), sorted.end());
  result.mean = mean_of(sorted);
  result.p99 = sorted[static_cast<std::size_t>(0.99 * static_cast<double>(sorted.size() - 1))];
  result.settled_mean = mean_of(late);
  result.converged_at = converged_at(ratios);
  return result;
}

Result run(const Setting& setting) {
  incast::Scenario s = network(setting);
  for (const Training& training : setting.jobs) {
    add_job(s, training, setting.iterations, setting.offset);
    s.jobs.back().jitter = setting.jitter;
  }
  const incast::Outcome o = run_with(s, setting);
  std::vector<std::vector<double>> ratios;
  for (std::size_t j = 0; j < setting.jobs.size(); ++j) {
    const double isolated_s = alone(setting.jobs[j], setting).iteration_s;
    ratios.emplace_back();
    for (std::size_t i = 0; i + 1 < o.iterations[j].size(); ++i) {
      const Duration took = o.iterations[j][i + 1].start - o.iterations[j][i].start;
      ratios.back().push_back(took.to_seconds() / isolated_s);
    }
  }
  Result result = summarize(ratios);
  result.finished = o.finished;
  result.drops = o.drops;
  return result;
}

Step step(double gap, grants::GrantScheduler::Policy policy) {
  // The period is long enough that neither job waits for the other's computation.
  const Training training{.period_s = 0.2, .share = 0.5, .stated_total = 1};
  Setting setting;
  setting.policy = policy;
  incast::Scenario s = network(setting);
  add_job(s, training, 2, 0);
  add_job(s, training, 2, gap);
  const incast::Outcome o = incast::run(s);
  const double whole_s = alone(training, setting).communication_s;
  const auto gap_of = [&](std::size_t i) {
    return (o.iterations[1][i].start - o.iterations[0][i].start).to_seconds() / whole_s;
  };
  return {.gap = gap_of(0), .next_gap = gap_of(1)};
}

double predicted_shift(double gap, double slope, double intercept) {
  return slope * gap * (1 - gap) / (intercept + slope * gap);
}

}  // namespace gradplane::sim::interleave
