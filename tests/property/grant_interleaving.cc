// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Jobs that share a node's downlink behave as the theory of MLTCP predicts, packet by packet.
#include <cmath>
#include <vector>

#include "tests/sim/interleave.h"
#include "tests/support/catch.h"

using namespace gradplane::sim::interleave;
using Policy = gradplane::grants::GrantScheduler::Policy;

namespace {

/// Under fair sharing the earlier job gains the time of its queue in each iteration. So the jobs
/// also drift apart, but need many times as many iterations as with other policies. This is too
/// few.
constexpr std::uint32_t kEarlyIterations = 16;

Result run_alike(std::size_t jobs, double share, Policy policy, double jitter = 0,
                 std::uint32_t iterations = 40) {
  Training training;
  training.share = share;
  Setting setting;
  setting.jobs.assign(jobs, training);
  setting.policy = policy;
  setting.jitter = jitter;
  setting.iterations = iterations;
  return run(setting);
}

}  // namespace

TEST_CASE("two jobs shift in an iteration as the published formula says, within ten percent") {
  for (const double gap : {0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9}) {
    CAPTURE(gap);
    const Step mltcp = step(gap, Policy::kMltcp);
    const double predicted = predicted_shift(mltcp.gap, 1.75, 0.25);
    CHECK(std::abs((mltcp.next_gap - mltcp.gap) / predicted - 1) < 0.1);
  }
}

TEST_CASE("under fair sharing a job gains no more than a part of the window in an iteration") {
  for (const double gap : {0.03, 0.1, 0.5, 0.9}) {
    CAPTURE(gap);
    const Step fair = step(gap, Policy::kFair);
    CHECK(std::abs(fair.next_gap - fair.gap) < 0.007);  // 0.7 ms: 57 blocks, with a window of 137
  }
}

TEST_CASE("jobs that fit soon take turns under mltcp and strict, and do not if fair") {
  struct Case {
    std::size_t jobs;
    double share;
    double min_fair_mean;
    double max_settled_mean;
  };
  for (const Case& c : {Case{2, 0.5, 1.4, 1.02}, Case{2, 0.29, 1.2, 1.02},
                        Case{3, 1.0 / 3, 1.3, 1.02}, Case{4, 0.25, 1.3, 1.03}}) {
    CAPTURE(c.jobs, c.share);
    const Result fair = run_alike(c.jobs, c.share, Policy::kFair, 0, kEarlyIterations);
    CHECK(fair.mean >= c.min_fair_mean);
    CHECK(fair.converged_at == -1);
    for (const Policy policy : {Policy::kMltcp, Policy::kStrict}) {
      const Result result = run_alike(c.jobs, c.share, policy);
      CHECK(result.settled_mean <= c.max_settled_mean);
      CHECK(result.converged_at >= 0);
      CHECK(result.converged_at <= 10);
    }
  }
}

TEST_CASE("jobs that do not fit gain what there is to gain") {
  CHECK(run_alike(2, 0.6, Policy::kFair, 0, kEarlyIterations).mean > 1.45);
  CHECK(run_alike(2, 0.6, Policy::kMltcp).settled_mean < 1.21);
}

TEST_CASE("jitter of the compute time shrinks the gain and does not undo it") {
  const Result mltcp = run_alike(2, 0.5, Policy::kMltcp, 0.1);
  CHECK(mltcp.mean < 1.06);
  CHECK(run_alike(2, 0.5, Policy::kFair, 0.1).mean > 1.1);
}

TEST_CASE("a misstated total delays the turns and does not prevent them") {
  for (const double stated : {0.25, 4.0}) {
    Setting setting;
    setting.jobs.resize(2);
    for (Training& training : setting.jobs) training.stated_total = stated;
    setting.policy = Policy::kMltcp;
    setting.iterations = 40;
    const Result result = run(setting);
    CAPTURE(stated);
    CHECK(result.settled_mean < 1.02);
    CHECK(result.converged_at <= 12);
  }
}

TEST_CASE("periods that are no multiples of each other gain nothing") {
  Setting setting;
  setting.jobs.resize(2);
  for (Training& training : setting.jobs) training.share = 1.0 / 3;
  setting.jobs[1].period_s *= 1.5;
  const double fair = run(setting).mean;
  setting.policy = Policy::kMltcp;
  CHECK(std::abs(run(setting).mean / fair - 1) < 0.02);
}
