// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/base/assert.h"
#include "dataplane/job/job_config.h"
#include "tests/sim/contestant.h"
#include "tests/sim/interleave.h"
#include "tests/sim/shared_cluster.h"

namespace gradplane::sim::interleave {
namespace {

constexpr std::uint16_t kWorkers = 2;
constexpr std::uint32_t kBuckets = 4;
constexpr std::uint32_t kAloneIterations = 4;

Duration from_seconds(double seconds) {
  return Duration::ns(static_cast<std::int64_t>(seconds * 1e9));
}

/// The elements of a bucket with which all buckets of all workers take `share` of the period on the
/// root's link.
std::uint32_t elements_of(const Training& training, const Setting& setting) {
  const double wire_bytes =
      training.period_s * training.share * static_cast<double>(setting.link_bits_per_second) / 8;
  const double payload =
      wire_bytes * kDefaultBlockBytes / (kDefaultBlockBytes + hop::kWireOverheadBytes);
  return static_cast<std::uint32_t>(payload / (kWorkers * kBuckets * sizeof(float)));
}

SharedScenario network(const Setting& setting) {
  SharedScenario s;
  s.seed = setting.seed;
  s.workers = kWorkers;
  s.link.bits_per_second = setting.link_bits_per_second;
  s.link.queue_bytes = setting.buffer_bytes;
  s.link.mark_bytes = setting.mark_bytes;
  s.grant_settings.policy = setting.policy;
  return s;
}

void add_job(SharedScenario& s, const Training& training, const Setting& setting,
             std::uint32_t iterations) {
  SharedJob job;
  job.iterations = iterations;
  job.buckets = kBuckets;
  job.elements = elements_of(training, setting);
  job.compute = from_seconds(training.period_s * (1 - training.share));
  const auto before = static_cast<double>(s.jobs.size());
  job.start = from_seconds(training.period_s * training.share * setting.offset * before);
  if (setting.contestant != "shares") {
    incast::Scenario chosen;
    chosen.senders.resize(1);
    GP_ASSERT(incast::choose(setting.contestant, chosen));
    s.grants = chosen.grants;
    if (chosen.congestion) job.congestion = *chosen.congestion;
    // Without grants, the controller finds its share of the link itself.
    s.paced = s.grants;
  }
  s.round_bytes = std::max(s.round_bytes, std::size_t{job.elements} * sizeof(float));
  s.jobs.push_back(job);
}

std::vector<double> periods(const std::vector<SharedOutcome::Iteration>& iterations) {
  std::vector<double> out;
  for (std::size_t i = 0; i + 1 < iterations.size(); ++i) {
    out.push_back((iterations[i + 1].start - iterations[i].start).to_seconds());
  }
  return out;
}

double isolated_s(const Training& training, const Setting& setting) {
  SharedScenario s = network(setting);
  add_job(s, training, setting, kAloneIterations);
  const std::vector<double> took = periods(sim::run(s).iterations[0]);
  GP_ASSERT(took.size() == kAloneIterations - 1);
  return (took[1] + took[2]) / 2;
}

}  // namespace

Result run_on_nodes(const Setting& setting) {
  SharedScenario s = network(setting);
  for (const Training& training : setting.jobs) {
    add_job(s, training, setting, setting.iterations);
    s.jobs.back().jitter = setting.jitter;
  }
  const SharedOutcome o = sim::run(s);
  std::vector<std::vector<double>> ratios;
  for (std::size_t j = 0; j < setting.jobs.size(); ++j) {
    const double isolated = isolated_s(setting.jobs[j], setting);
    ratios.push_back(periods(o.iterations[j]));
    for (double& period : ratios.back()) period /= isolated;
  }
  Result result = summarize(ratios);
  result.finished = o.failure.empty();
  result.drops = o.dropped;
  return result;
}

}  // namespace gradplane::sim::interleave
