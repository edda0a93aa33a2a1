// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Poll loops that sleep between two polls, with whole engines in virtual time.
#include "tests/sim/shared_cluster.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::sim;

namespace {

/// The mean time in seconds of an iteration, for a job that is alone.
double iteration_s(std::uint16_t workers, Duration nap, bool grants) {
  SharedScenario s;
  s.link.bits_per_second = 200'000'000;
  s.link.delay = Duration::us(5);
  s.link.queue_bytes = 256 << 10;
  s.workers = workers;
  s.grants = grants;
  s.buffer_known = false;
  s.nap = nap;
  SharedJob job;
  job.compute = Duration::ms(2);
  job.iterations = 12;
  job.buckets = 2;
  job.elements = 100'000;
  s.jobs = {job};
  const SharedOutcome o = run(s);
  REQUIRE(o.failure.empty());
  double sum = 0;
  for (const auto& iteration : o.iterations[0]) {
    sum += (iteration.end - iteration.start).to_seconds();
  }
  return sum / static_cast<double>(o.iterations[0].size());
}

}  // namespace

TEST_CASE("grants cost a lone job nothing where poll loops nap") {
  for (const std::uint16_t workers : std::initializer_list<std::uint16_t>{1, 2, 4}) {
    for (const std::int64_t nap_us : {0, 200, 500}) {
      const double shares = iteration_s(workers, Duration::us(nap_us), false);
      const double grants = iteration_s(workers, Duration::us(nap_us), true);
      INFO(workers << " workers, naps of " << nap_us << " us: " << shares << " s, " << grants);
      CHECK(grants < 1.1 * shares);
    }
  }
}
