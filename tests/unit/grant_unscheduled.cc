// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How many blocks sources may have in flight without a grant. Grants give others what silent
// sources leave of the window.
#include <utility>
#include <vector>

#include "dataplane/grants/grant_scheduler.h"
#include "tests/support/catch.h"

using namespace gradplane;
using grants::GrantScheduler;
using grants::JobIndex;
using grants::SourceIndex;

namespace {

constexpr std::size_t kBlock = 1250;
constexpr std::uint32_t kBuffer = 64;
constexpr std::uint32_t kRoundTripBlocks = 16;  // blocks that 1 Gbit/s carries in kRoundTrip
/// Three quarters of the buffer and the blocks of a round trip.
constexpr std::uint32_t kWindow = kBuffer * 3 / 4 + kRoundTripBlocks;
constexpr Duration kRoundTrip = Duration::us(160);
constexpr Instant kStart = Instant::from_ns(1'000'000'000);

GrantScheduler scheduler() {
  return GrantScheduler({.link_bits_per_second = 1'000'000'000,
                         .buffer_bytes = kBuffer * kBlock,
                         .block_wire_bytes = kBlock,
                         .max_sources = 16,
                         .max_jobs = 4});
}

std::vector<SourceIndex> add(GrantScheduler& grants, std::uint16_t job, int count) {
  std::vector<SourceIndex> out;
  for (int n = 0; n < count; ++n) {
    out.push_back(*grants.add_source(JobIndex{job}));
    grants.on_rtt(out.back(), kRoundTrip);
  }
  return out;
}

/// Takes grants until no more come. Returns the number of granted blocks.
std::uint32_t granted(GrantScheduler& grants) {
  for (int n = 0; n < 1000; ++n) (void)grants.next_grant(kStart + Duration::us(n));
  return static_cast<std::uint32_t>(grants.stats(kStart).granted_blocks);
}

}  // namespace

TEST_CASE("sources share what may be on its way, jobs by weight") {
  GrantScheduler grants = scheduler();
  const auto first = add(grants, 0, 4);
  CHECK(grants.unscheduled_blocks(first[0]) == kWindow / 4);
  const auto second = add(grants, 1, 2);
  CHECK(grants.unscheduled_blocks(first[0]) == kWindow / 8);
  CHECK(grants.unscheduled_blocks(second[0]) == kWindow / 4);
  grants.set_policy(GrantScheduler::Policy::kWeighted);
  grants.set_job_weight(JobIndex{1}, 3);
  CHECK(grants.unscheduled_blocks(first[0]) == kWindow / 16);
  CHECK(grants.unscheduled_blocks(second[0]) == kWindow * 3 / 8);
}

TEST_CASE("while everybody sends, nobody is granted anything") {
  GrantScheduler grants = scheduler();
  for (const SourceIndex source : add(grants, 0, 4)) {
    grants.on_data(source, 1, 1000, kBlock, false, kStart);
  }
  CHECK(granted(grants) == 0);
}

TEST_CASE("what silent sources leave is granted to those who send") {
  GrantScheduler grants = scheduler();
  const auto sources = add(grants, 0, 4);
  grants.on_data(sources[0], 1, 1000, kBlock, false, kStart);
  const std::uint32_t blocks = granted(grants);
  CHECK(blocks <= kWindow * 3 / 4);
  CHECK(blocks >= kWindow * 3 / 4 - 16);
}

TEST_CASE("a job's long path makes no other job's window larger") {
  GrantScheduler grants = scheduler();
  const auto near = add(grants, 0, 2);
  const std::uint32_t alone = grants.unscheduled_blocks(near[0]);
  const SourceIndex far = *grants.add_source(JobIndex{1});
  for (int n = 0; n < 1000; ++n) grants.on_rtt(far, Duration::ms(65));
  CHECK(grants.unscheduled_blocks(near[0]) == alone / 2);
  CHECK(grants.unscheduled_blocks(far) > 100 * alone);
  grants.remove_source(far);
  const SourceIndex next = *grants.add_source(JobIndex{1});  // at the same index, of another job
  CHECK(grants.unscheduled_blocks(next) < 2 * alone);
}

TEST_CASE("the demand of a silent source is forgotten, and its job gives way") {
  GrantScheduler grants = scheduler();
  grants.set_policy(GrantScheduler::Policy::kStrict);
  const auto ahead = add(grants, 0, 1);
  const auto behind = add(grants, 1, 1);
  grants.set_job_progress(JobIndex{0}, 1);
  grants.on_data(ahead[0], 1, 1000, kBlock, false, kStart);  // its only packet
  grants.on_data(behind[0], 1, 1000, kBlock, false, kStart);
  CHECK(grants.unscheduled_blocks(behind[0]) == 1);
  const Instant later = kStart + Duration::ms(150);
  grants.on_data(behind[0], 2, 1000, kBlock, false, later);
  while (grants.next_grant(later)) {
  }
  CHECK(grants.unscheduled_blocks(behind[0]) == kWindow / 2);
  CHECK(grants.view(behind[0]).total_blocks > 2);  // the job gets grants
}

TEST_CASE("a window of few blocks is granted too") {
  GrantScheduler grants({.link_bits_per_second = 1'000'000'000,
                         .buffer_bytes = 8 * kBlock,
                         .block_wire_bytes = kBlock,
                         .max_sources = 16,
                         .max_jobs = 4});
  std::vector<SourceIndex> sources;
  for (int n = 0; n < 3; ++n) {
    sources.push_back(*grants.add_source(JobIndex{0}));
    grants.on_rtt(sources.back(), Duration::us(20));
  }
  grants.on_data(sources[0], 1, 1000, kBlock, false, kStart);
  CHECK(granted(grants) >= 4);
}

TEST_CASE("an overflowing receive ring halves what needs no grant") {
  GrantScheduler grants = scheduler();
  const auto sources = add(grants, 0, 1);
  grants.on_data(sources[0], 1, 0, kBlock, false, kStart);
  grants.on_ring_pressure(kStart);
  CHECK(grants.unscheduled_blocks(sources[0]) == kWindow / 2);
}

TEST_CASE("a guess of the round trip is forgotten when the sender tells its own") {
  GrantScheduler grants = scheduler();
  const SourceIndex far = *grants.add_source(JobIndex{0});
  (void)*grants.add_source(JobIndex{0});  // a silent source, whose share is granted
  std::uint32_t sent = 1;
  grants.on_data(far, sent, 1000, kBlock, false, kStart);
  const auto grant = grants.next_grant(kStart);
  REQUIRE(grant);
  while (sent++ < grant->total_blocks) {
    grants.on_data(far, sent, 1000, kBlock, false, kStart + Duration::us(sent));
  }
  for (int n = 0; n < 1000; ++n) grants.on_rtt(far, Duration::ms(65));
  CHECK(grants.unscheduled_blocks(far) > 3000);  // half of the blocks that fit in 65 ms
}

TEST_CASE("a source whose credit waits in the queue that the window allows is not slow") {
  for (const auto& [took, capped] :
       {std::pair{Duration::us(500), false}, {Duration::ms(2), true}}) {
    GrantScheduler grants = scheduler();
    const auto sources = add(grants, 0, 4);
    grants.on_data(sources[0], 1, 1000, kBlock, false, kStart);
    (void)granted(grants);
    const std::uint32_t total = grants.view(sources[0]).total_blocks;
    REQUIRE(total > 1);
    const Instant now = kStart + took;
    for (std::uint32_t sent = 2; sent <= total; ++sent) {
      grants.on_data(sources[0], sent, 1000, kBlock, false, now);
    }
    CHECK((grants.view(sources[0]).cap_blocks != UINT32_MAX) == capped);
  }
}

TEST_CASE("a sender may have begun to count before its source was added") {
  GrantScheduler grants = scheduler();
  const auto sources = add(grants, 0, 2);
  grants.on_data(sources[0], 1U << 20, 1000, kBlock, false, kStart);
  CHECK(grants.stats(kStart).implausible == 0);
  CHECK(grants.view(sources[0]).sent_blocks == 1U << 20);
  CHECK(granted(grants) > 0);
  CHECK(grants.view(sources[0]).total_blocks > 1U << 20);
}
