// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Which source gets the next grant if sources also send without grants, how large a grant is, and
// how much of the window silent sources and lost blocks hold.
#include <vector>

#include "dataplane/grants/grant_scheduler.h"
#include "tests/support/catch.h"
#include "tests/support/idle_job.h"

using namespace gradplane;
using grants::GrantScheduler;
using grants::JobIndex;
using grants::SourceIndex;

namespace {

constexpr std::size_t kBlock = 1250;  // 10 us at 1 Gbit/s
constexpr Duration kRoundTrip = Duration::us(100);
constexpr Instant kStart = Instant::from_ns(1'000'000'000);
constexpr JobIndex kJob{0};
constexpr JobIndex kOtherJob{1};
constexpr JobIndex kIdleJob{2};
constexpr std::uint32_t kDemand = 50'000;

struct Node {
  explicit Node(std::size_t buffer_blocks)
      : grants({.link_bits_per_second = 1'000'000'000,
                .buffer_bytes = buffer_blocks * kBlock,
                .block_wire_bytes = kBlock,
                .max_sources = 16,
                .max_jobs = 3}) {}

  SourceIndex add(JobIndex job = kJob) {
    const SourceIndex source = *grants.add_source(job);
    grants.on_rtt(source, kRoundTrip);
    return source;
  }
  std::uint32_t sent(SourceIndex source) const { return grants.view(source).sent_blocks; }
  void send(SourceIndex source, std::uint32_t blocks, std::uint32_t waiting = kDemand) {
    for (std::uint32_t n = 0; n < blocks; ++n) {
      grants.on_data(source, sent(source) + 1, waiting, kBlock, false, now);
    }
  }
  /// Passes a round trip. Every source uses the credit that it had at the beginning.
  void transfer(const std::vector<SourceIndex>& sources) {
    now = now + kRoundTrip;
    while (grants.next_grant(now)) {
    }
    for (const SourceIndex source : sources) {
      send(source, grants.view(source).total_blocks - sent(source));
    }
  }

  GrantScheduler grants;
  Instant now = kStart;
};

}  // namespace

TEST_CASE("a source catches up with what others sent without grants by 1024 blocks, no more") {
  Node node(8);
  testing::add_idle_job(node.grants, kIdleJob);
  const SourceIndex early = node.add();
  const SourceIndex late = node.add();
  node.send(early, 4000);  // none of these blocks had a grant
  node.send(late, 1);
  const std::uint32_t before = node.sent(early);
  for (int n = 0; n < 500; ++n) node.transfer({early, late});
  CHECK(node.sent(late) > 1024 + 300);
  CHECK(node.sent(early) > before + 300);
}

TEST_CASE("turns count from when the job begins to send again") {
  Node node(8);
  testing::add_idle_job(node.grants, kIdleJob);
  const SourceIndex first = node.add();
  const SourceIndex second = node.add();
  node.send(first, 4000);
  node.send(first, 1, 0);  // the job has nothing more to send
  node.send(second, 1);
  node.send(first, 1);
  const std::uint32_t before = node.sent(first);
  for (int n = 0; n < 300; ++n) node.transfer({first, second});
  CHECK(node.sent(first) > before + 300);
}

TEST_CASE("blocks that a waiting source sends without grants count for its turn") {
  Node node(16);
  testing::add_idle_job(node.grants, kIdleJob);
  const SourceIndex holder = node.add();
  const SourceIndex first = node.add();
  const SourceIndex second = node.add();
  node.send(holder, 1);
  node.now = node.now + kRoundTrip;
  while (node.grants.next_grant(node.now)) {
  }  // the silent source has all of the window
  node.send(first, 1);
  node.send(second, 1);
  REQUIRE_FALSE(node.grants.next_grant(node.now));
  node.send(first, 5);
  node.send(holder, node.grants.view(holder).total_blocks - node.sent(holder));
  node.grants.withdraw(holder, node.now);
  node.now = node.now + Duration::ms(1);
  const auto grant = node.grants.next_grant(node.now);
  REQUIRE(grant);
  CHECK(grant->source == second);
}

TEST_CASE("what one silent source of many leaves is granted too") {
  Node node(40);
  std::vector<SourceIndex> sources;
  for (int n = 0; n < 8; ++n) sources.push_back(node.add());
  sources.pop_back();  // the last source is silent
  const std::uint32_t share = node.grants.unscheduled_blocks(sources[0]);
  REQUIRE(share == 5);
  for (const SourceIndex source : sources) node.send(source, 1);
  for (int n = 0; n < 20; ++n) {
    node.now = node.now + Duration::us(10);
    while (node.grants.next_grant(node.now)) {
    }
  }
  CHECK(node.grants.stats(node.now).outstanding_blocks >= share - 1);
  CHECK(node.grants.stats(node.now).window_used <= 1);
}

TEST_CASE("a job that rested does not make up for what others sent without grants") {
  Node node(8);
  testing::add_idle_job(node.grants, kIdleJob);
  const SourceIndex busy = node.add();
  const SourceIndex rested = node.add(kOtherJob);
  node.send(busy, 4000);
  node.send(rested, 1);
  const std::uint32_t before = node.sent(busy);
  for (int n = 0; n < 300; ++n) node.transfer({busy, rested});
  CHECK(node.sent(rested) > 400);
  CHECK(node.sent(busy) > before + 400);
}

TEST_CASE("after a rest only a few blocks are granted at once") {
  Node node(40);
  testing::add_idle_job(node.grants, kIdleJob);
  const SourceIndex source = node.add();
  node.now = node.now + Duration::seconds(1);
  node.send(source, 1);
  node.now = node.now + Duration::us(10);
  while (node.grants.next_grant(node.now)) {
  }
  CHECK(node.grants.stats(node.now).outstanding_blocks > 0);
  CHECK(node.grants.stats(node.now).outstanding_blocks < 20);  // of a window of about 40
}

TEST_CASE("a source that falls silent gathers no credit at the cost of others") {
  Node node(8);
  testing::add_idle_job(node.grants, kIdleJob);
  const SourceIndex silent = node.add();
  std::vector<SourceIndex> others;
  for (int n = 0; n < 5; ++n) others.push_back(node.add());
  node.send(silent, 1);
  for (const SourceIndex other : others) node.send(other, 1);
  for (int n = 0; n < 45; ++n) node.transfer(others);  // its credit has not expired yet
  CHECK(node.grants.stats(node.now).expired_blocks == 0);
  CHECK(node.grants.view(silent).outstanding_blocks <= 6);
}

TEST_CASE("lost blocks give their credit back though nothing more arrives") {
  Node node(16);
  testing::add_idle_job(node.grants, kIdleJob);
  const SourceIndex source = node.add();
  node.grants.on_data(source, 1, 8, kBlock, false, node.now);
  node.now = node.now + kRoundTrip;
  while (node.grants.next_grant(node.now)) {
  }
  const std::uint32_t total = node.grants.view(source).total_blocks;
  REQUIRE(total >= 3);
  node.grants.on_data(source, total, 0, kBlock, false, node.now);
  REQUIRE(node.grants.stats(node.now).outstanding_blocks == total - 2);
  node.now = node.now + Duration::ms(1);
  REQUIRE_FALSE(node.grants.next_grant(node.now));
  CHECK(node.grants.stats(node.now).outstanding_blocks == 0);
  CHECK(node.grants.stats(node.now).lost_blocks == total - 2);
}
