// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Which of several waiting rounds is sent first, with whole engines in virtual time.

#include "tests/property/seeds.h"
#include "tests/sim/shared_cluster.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::sim;
using gradplane::testing::kSanitized;

namespace {

constexpr std::uint32_t kBuckets = 8;

struct Times {
  double iteration_ms = 0;
  double first_layers_ms = 0;  // from the start of an iteration to the sum of its last bucket
};

/// Mean times of a job's iterations. Its buckets take twice as long to send as to compute.
Times times_of(bool forward, double skew, double loss, bool grants) {
  SharedScenario s;
  s.link.bits_per_second = 200'000'000;
  s.link.loss = loss;
  s.link.queue_bytes = 256 << 10;
  s.workers = 4;
  s.forward_order = forward;
  s.grants = grants;
  SharedJob job;
  job.buckets = kBuckets;
  job.elements = 32 << 10;  // 128 KiB, for which 4 workers need 22 ms
  job.bucket_gap = Duration::ms(11);
  job.compute = Duration::ms(20);
  job.skew = skew;
  s.jobs = {job};
  const SharedOutcome o = run(s);
  REQUIRE(o.failure.empty());
  Times times;
  const auto count = static_cast<double>(o.iterations[0].size());
  for (std::size_t i = 0; i < o.iterations[0].size(); ++i) {
    const auto& [start, end] = o.iterations[0][i];
    times.iteration_ms += (end - start).to_seconds() * 1e3 / count;
    times.first_layers_ms += (o.bucket_ends[0][i][kBuckets - 1] - start).to_seconds() * 1e3 / count;
  }
  return times;
}

}  // namespace

TEST_CASE("what the next forward pass needs comes first") {
  for (const double skew : {0.0, 0.3}) {
    for (const double loss : {0.0, 0.01}) {
      if (kSanitized && loss > 0) continue;
      for (const bool grants : {false, true}) {
        INFO("skew " << skew << ", loss " << loss << ", grants " << grants);
        const Times usual = times_of(false, skew, loss, grants);
        const Times forward = times_of(true, skew, loss, grants);
        CHECK(usual.first_layers_ms > 0.95 * usual.iteration_ms);
        CHECK(forward.first_layers_ms < 0.75 * usual.first_layers_ms);
        // If ranks are not in step, they have different rounds in flight. A round then waits for a
        // rank that sends another one first.
        CHECK(forward.iteration_ms < (skew > 0 ? 1.25 : 1.02) * usual.iteration_ms);
      }
    }
  }
}
