// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Hosts that have a job with grants beside one without, with whole engines in virtual time.
#include <algorithm>

#include "tests/sim/shared_cluster.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::sim;

namespace {

struct Times {
  double first_s = 0;  // means over the iterations of each job
  double second_s = 0;
};

double mean_s(const std::vector<SharedOutcome::Iteration>& iterations) {
  double sum = 0;
  for (const auto& [start, end] : iterations) sum += (end - start).to_seconds();
  return sum / static_cast<double>(iterations.size());
}

struct Case {
  std::uint16_t workers = 0;
  std::uint32_t iterations = 0;
  double loss = 0;
};

/// Two equal jobs that communicate most of the time. All their sums must be right.
Times times_of(const Case& c, bool first_grants, bool second_grants) {
  SharedScenario s;
  s.link.bits_per_second = 1'000'000'000;
  s.link.delay = Duration::us(20);
  s.link.queue_bytes = 256 << 10;
  s.link.loss = c.loss;
  s.workers = c.workers;
  s.grants = true;
  SharedJob job;
  job.compute = Duration::ms(2);
  job.iterations = c.iterations;
  job.elements = 400'000u / c.workers;
  for (const bool grants : {first_grants, second_grants}) {
    job.shares = !grants;
    s.jobs.push_back(job);
    job.start = Duration::ms(3);
  }
  const SharedOutcome o = run(s);
  REQUIRE(o.failure.empty());
  return {mean_s(o.iterations[0]), mean_s(o.iterations[1])};
}

}  // namespace

TEST_CASE("a job with grants and one without share a link as two jobs with shares do") {
  for (const Case& c : {Case{4, 4, 0}, Case{4, 4, 0.01}, Case{40, 2, 0}}) {
    const Times shares = times_of(c, false, false);
    const Times mixed = times_of(c, true, false);
    const double usual_s = std::max(shares.first_s, shares.second_s);
    INFO(c.workers << " workers, loss " << c.loss << ": shares " << shares.first_s << " and "
                   << shares.second_s << " s; mixed " << mixed.first_s << " s with and "
                   << mixed.second_s << " s without");
    CHECK(mixed.first_s < 1.2 * usual_s);
    CHECK(mixed.second_s < 1.2 * usual_s);
  }
}
