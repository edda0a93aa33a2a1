// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <cmath>
#include <vector>

#include "dataplane/grants/grant_scheduler.h"
#include "tests/support/catch.h"
#include "tests/support/idle_job.h"

using namespace gradplane;
using grants::GrantScheduler;
using grants::JobIndex;
using grants::SourceIndex;
using Policy = GrantScheduler::Policy;

namespace {

constexpr std::size_t kBlock = 1250;

/// For each source that sends, so many are silent. Then nearly all of the window is granted.
constexpr int kSilentSources = 15;

/// Runs jobs that always have demand. Packets arrive a round trip after their grants. Returns how
/// many blocks each job sent. `prepare` sets the shares.
template <typename Prepare>
std::vector<double> shares(const std::vector<int>& sources_of_job, int round_trips,
                           Prepare prepare) {
  GrantScheduler grants({.link_bits_per_second = 1'000'000'000,
                         .buffer_bytes = 100 * kBlock,
                         .block_wire_bytes = kBlock,
                         .max_sources = 256,
                         .max_jobs = 8});
  prepare(grants);
  std::vector<SourceIndex> all;
  Instant now;
  for (std::size_t job = 0; job < sources_of_job.size(); ++job) {
    for (int n = 0; n < sources_of_job[job]; ++n) {
      all.push_back(*grants.add_source(JobIndex::from_index(job)));
      for (int m = 0; m < kSilentSources; ++m) {
        REQUIRE(grants.add_source(JobIndex::from_index(job)));
      }
      grants.on_rtt(all.back(), Duration::us(100));
      grants.on_data(all.back(), 0, 100'000, kBlock, false, now);
    }
  }
  std::vector<std::uint32_t> told(256, 0);
  for (int n = 0; n < round_trips; ++n) {
    for (int step = 0; step < 10; ++step) {
      now = now + Duration::us(10);
      while (const auto grant = grants.next_grant(now))
        told[grant->source.index()] = grant->total_blocks;
    }
    for (const SourceIndex source : all) {
      while (grants.view(source).sent_blocks < told[source.index()]) {
        grants.on_data(source, grants.view(source).sent_blocks + 1, 100'000, kBlock, false, now);
      }
    }
  }
  std::vector<double> got(sources_of_job.size(), 0);
  for (const SourceIndex source : all) {
    got[grants.view(source).job.index()] += grants.view(source).sent_blocks;
  }
  return got;
}

bool near(double value, double expected) {
  return std::abs(value / expected - 1) < 0.05;
}

}  // namespace

TEST_CASE("jobs share fairly, however many sources they have") {
  const auto got = shares({1, 6}, 1000, [](GrantScheduler& grants) {
    grants.set_job_weight(JobIndex{0}, 9);  // only other policies use weights
    grants.set_job_progress(JobIndex{1}, 1);
  });
  CHECK(near(got[0] / got[1], 1));
  CHECK(got[0] + got[1] > 9700);
}

TEST_CASE("a job does not pay for the one that had its place before") {
  const auto got = shares({1, 1}, 500, [](GrantScheduler& grants) {
    const SourceIndex greedy = *grants.add_source(JobIndex{1});
    for (std::uint32_t n = 1; n <= 1000; ++n) {
      grants.on_data(greedy, n * 4000, 1, kBlock, false, Instant());
    }
    grants.remove_source(greedy);
  });
  CHECK(near(got[0] / got[1], 1));
}

TEST_CASE("weights are kept within five percent") {
  const auto got = shares({2, 3, 1}, 2000, [](GrantScheduler& grants) {
    grants.set_policy(Policy::kWeighted);
    grants.set_job_weight(JobIndex{0}, 1);
    grants.set_job_weight(JobIndex{1}, 2.5);
    grants.set_job_weight(JobIndex{2}, 6);
  });
  CHECK(near(got[1] / got[0], 2.5));
  CHECK(near(got[2] / got[0], 6));
}

TEST_CASE("mltcp shares by F of the progress, times the weight") {
  const auto got = shares({2, 2}, 2000, [](GrantScheduler& grants) {
    grants.set_policy(Policy::kMltcp);
    grants.set_job_progress(JobIndex{0}, 0.8);
    grants.set_job_progress(JobIndex{1}, 0.2);
  });
  CHECK(near(got[0] / got[1], (1.75 * 0.8 + 0.25) / (1.75 * 0.2 + 0.25)));
  const auto other = shares({2, 2}, 2000, [](GrantScheduler& grants) {
    grants.set_policy(Policy::kMltcp);
    grants.set_mltcp(4, 0.25);
    grants.set_job_progress(JobIndex{0}, 1);
    grants.set_job_weight(JobIndex{1}, 2);
  });
  CHECK(near(other[0] / other[1], 4.25 / 0.5));
}

TEST_CASE("strict gives all to the job with the most progress") {
  const auto got = shares({2, 2, 2}, 100, [](GrantScheduler& grants) {
    grants.set_policy(Policy::kStrict);
    grants.set_job_progress(JobIndex{0}, 0.5);
    grants.set_job_progress(JobIndex{1}, 0.6);
    grants.set_job_progress(JobIndex{2}, 0.1);
  });
  CHECK(got[1] > 900);
  CHECK(got[0] == 0);
  CHECK(got[2] == 0);
}

TEST_CASE("weights and progress that are no numbers do no harm") {
  const auto got = shares({1, 1, 1}, 1000, [](GrantScheduler& grants) {
    grants.set_policy(Policy::kMltcp);
    grants.set_job_weight(JobIndex{0}, std::nan(""));
    grants.set_job_progress(JobIndex{0}, std::nan(""));
    grants.set_job_progress(JobIndex{1}, -3);
    grants.set_job_weight(JobIndex{2}, 0);
    grants.set_job_progress(JobIndex{2}, 1e300);
  });
  CHECK(near(got[0] / got[1], 1));
  CHECK(got[2] > 0);
  CHECK(got[2] < got[0] / 50);
}

TEST_CASE("a job that rested does not make up for it") {
  GrantScheduler grants({.link_bits_per_second = 1'000'000'000,
                         .buffer_bytes = 100 * kBlock,
                         .block_wire_bytes = kBlock,
                         .max_sources = 3,
                         .max_jobs = 3});
  const SourceIndex busy = *grants.add_source(JobIndex{0});
  const SourceIndex rested = *grants.add_source(JobIndex{1});
  testing::add_idle_job(grants, JobIndex{2});
  Instant now;
  std::uint32_t told[2] = {};
  const auto transfer = [&](int round_trips) {
    for (int n = 0; n < round_trips; ++n) {
      now = now + Duration::us(100);
      while (const auto grant = grants.next_grant(now))
        told[grant->source.index()] = grant->total_blocks;
      for (const SourceIndex source : {busy, rested}) {
        while (grants.view(source).sent_blocks < told[source.index()]) {
          grants.on_data(source, grants.view(source).sent_blocks + 1, 100'000, kBlock, false, now);
        }
      }
    }
  };
  grants.on_data(busy, 0, 100'000, kBlock, false, now);
  transfer(1000);
  const std::uint32_t before = told[busy.index()];
  grants.on_data(rested, 0, 100'000, kBlock, false, now);
  transfer(200);
  CHECK(near(told[busy.index()] - before, told[rested.index()]));
}
