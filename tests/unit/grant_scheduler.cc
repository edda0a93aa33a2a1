// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/grants/grant_scheduler.h"

#include <map>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/idle_job.h"

using namespace gradplane;
using grants::GrantScheduler;
using grants::JobIndex;
using grants::SourceIndex;
using Limit = GrantScheduler::Limit;

namespace {

constexpr Instant kStart = Instant::from_ns(1'000'000'000);
constexpr std::size_t kBlock = 1250;                // 10 us at 1 Gbit/s
constexpr Duration kRoundTrip = Duration::us(100);  // of ten blocks
constexpr Duration kMaxDebt = Duration::ms(10);
constexpr std::size_t kBufferBlocks = 8;
/// Three quarters of the buffer and what the link carries in a round trip, less the unscheduled
/// block of a source that has demand.
constexpr std::uint32_t kWindow = 15;
/// A quarter of kWindow.
constexpr std::uint32_t kBatch = 3;
/// The most credit of a withdrawn source.
constexpr std::uint32_t kMaxWithdrawn = 4;
constexpr JobIndex kJob{0};
constexpr JobIndex kOtherJob{1};
constexpr JobIndex kIdleJob{3};

/// A scheduler, its clock, and its grants. Nearly all of the window is granted.
struct Node {
  explicit Node(std::size_t buffer_blocks = kBufferBlocks)
      : grants({.link_bits_per_second = 1'000'000'000,
                .buffer_bytes = buffer_blocks * kBlock,
                .block_wire_bytes = kBlock,
                .max_sources = 16,
                .max_jobs = 4}) {
    testing::add_idle_job(grants, kIdleJob);
  }

  SourceIndex add(JobIndex job = kJob) {
    const SourceIndex source = *grants.add_source(job);
    grants.on_rtt(source, kRoundTrip);
    return source;
  }
  /// `source` sends its `sent`-th packet, which says that `waiting` more wait.
  void data(SourceIndex source, std::uint32_t sent, std::uint32_t waiting, bool marked = false) {
    grants.on_data(source, sent, waiting, kBlock, marked, now);
  }
  /// All blocks that `source` was granted arrive, but for the last `but` blocks.
  void deliver(SourceIndex source, std::uint32_t waiting, std::uint32_t but = 0) {
    while (sent(source) + but < totals[source]) data(source, sent(source) + 1, waiting);
  }
  std::uint32_t sent(SourceIndex source) const { return grants.view(source).sent_blocks; }
  /// A packet with a count that was seen before: it brings no new block, and says how many wait.
  void announce(SourceIndex source, std::uint32_t waiting) {
    grants.on_data(source, grants.view(source).sent_blocks, waiting, kBlock, false, now);
  }
  /// Runs for `time`. Returns the grants of that time in order.
  std::vector<GrantScheduler::Grant> run(Duration time) {
    std::vector<GrantScheduler::Grant> given;
    const Instant end = now + time;
    for (;;) {
      while (const auto grant = grants.next_grant(now)) {
        given.push_back(*grant);
        totals[grant->source] = grant->total_blocks;
        REQUIRE(given.size() < 100'000);
      }
      const Instant next = grants.next_time(now);
      REQUIRE(next > now);  // otherwise a poll loop would spin
      if (next > end) break;
      now = next;
    }
    now = end;
    return given;
  }
  std::uint32_t outstanding() { return grants.stats(now).outstanding_blocks; }

  GrantScheduler grants;
  Instant now = kStart;
  std::map<SourceIndex, std::uint32_t> totals;
};

}  // namespace

TEST_CASE("a source that has demand gets credit for a window, and no more until data arrives") {
  Node node;
  const SourceIndex source = node.add();
  node.announce(source, 1000);
  node.run(Duration::us(150));
  CHECK(node.outstanding() <= kWindow);
  CHECK(node.outstanding() > kWindow - kBatch);
  CHECK(node.grants.stats(node.now).limit == Limit::kWindow);
  node.deliver(source, 1000, 2);
  CHECK(node.outstanding() == 2);
  node.run(Duration::us(99));
  CHECK(node.outstanding() > 2);
}

TEST_CASE(
    "nobody is granted more than is queued, and without demand there is nothing to wait for") {
  Node node;
  const SourceIndex source = node.add();
  CHECK(node.run(kRoundTrip).empty());
  CHECK(node.grants.next_time(node.now) == Instant::never());
  node.data(source, 1, 0);
  CHECK(node.run(kRoundTrip).empty());
  CHECK(node.grants.next_time(node.now) == Instant::never());
  CHECK(node.grants.stats(node.now).limit == Limit::kNoDemand);
  node.announce(source, 3);
  node.run(Duration::us(99));
  CHECK(node.totals[source] == 4);
  for (std::uint32_t sent = 2; sent <= 4; ++sent) node.data(source, sent, 4 - sent);
  CHECK(node.outstanding() == 0);
  CHECK(node.grants.next_time(node.now + Duration::seconds(1)) <= node.now + Duration::seconds(1));
  node.run(Duration::seconds(1));
  CHECK(node.totals[source] == 4);
  CHECK(node.grants.next_time(node.now) == Instant::never());
}

TEST_CASE("grants are paced at 0.99 of the link") {
  Node node;
  const SourceIndex source = node.add();
  node.announce(source, 100'000);
  for (int n = 0; n < 1000; ++n) {
    node.run(kRoundTrip);
    node.deliver(source, 100'000);
  }
  const double blocks = node.totals[source];
  CHECK(blocks <= 10'000 * 0.99 + kBatch + 5);
  CHECK(blocks >= 10'000 * 0.98);
}

TEST_CASE("other traffic takes its part of the link") {
  Node node;
  const SourceIndex source = node.add();
  node.announce(source, 100'000);
  for (int n = 0; n < 1000; ++n) {
    for (int packet = 0; packet < 4; ++packet) node.grants.on_other(kBlock, node.now);
    node.run(kRoundTrip);
    node.deliver(source, 100'000);
  }
  CHECK(node.sent(source) <= 10'000 * 0.60);
  CHECK(node.sent(source) >= 10'000 * 0.55);
}

TEST_CASE("what is smaller than a block takes less of the link") {
  Node node;
  const SourceIndex source = node.add();
  node.announce(source, 100'000);
  std::uint32_t sent = 0;
  for (int n = 0; n < 1000; ++n) {
    node.run(kRoundTrip);
    for (; sent < node.totals[source];) {
      ++sent;
      node.grants.on_data(source, sent, 100'000 - sent, kBlock / 2, false, node.now);
    }
  }
  CHECK(sent > 10'000 * 1.15);
}

TEST_CASE("unscheduled blocks count: the next total is beyond them") {
  Node node;
  const SourceIndex source = node.add();
  for (std::uint32_t sent = 1; sent <= 200; ++sent) node.data(source, sent, 100);
  CHECK(node.grants.view(source).total_blocks == 200);
  node.run(Duration::us(99) + kMaxDebt);
  CHECK(node.totals[source] > 200);
}

TEST_CASE("a source that sends without credit takes no part of the link from others") {
  Node node;
  const SourceIndex honest = node.add();
  const SourceIndex other = node.add(kOtherJob);
  node.announce(honest, 100'000);
  for (std::uint32_t n = 0; n < 1000; ++n) {
    for (int packet = 0; packet < 4; ++packet) node.data(other, node.sent(other) + 1, 0);
    node.run(kRoundTrip);
    node.deliver(honest, 100'000);
  }
  CHECK(node.sent(honest) <= 10'000 * 0.75);
  CHECK(node.sent(honest) >= 10'000 * 0.5);
}

TEST_CASE("however much other traffic there was, grants go on soon") {
  Node node;
  const SourceIndex source = node.add();
  node.announce(source, 100);
  for (int n = 0; n < 100'000; ++n) node.grants.on_other(kBlock, node.now);  // blocks of a second
  node.run(kMaxDebt + kRoundTrip);
  CHECK(node.totals[source] > 0);
}

TEST_CASE("what a source says to have queued is bounded, and less is believed at once") {
  Node node;
  const SourceIndex source = node.add();
  node.announce(source, UINT32_MAX);
  node.run(Duration::us(150));
  CHECK(node.outstanding() >= kWindow - kBatch);
  node.data(source, 1, 3);
  CHECK(node.outstanding() == 3);
  node.data(source, 2, 0);
  CHECK(node.outstanding() == 0);
}

TEST_CASE("sources of a job take turns, block by block") {
  Node node;
  std::vector<SourceIndex> sources;
  for (int n = 0; n < 3; ++n) sources.push_back(node.add());
  for (const SourceIndex source : sources) node.announce(source, 500);
  for (int n = 0; n < 200; ++n) {
    node.run(kRoundTrip);
    for (const SourceIndex source : sources) node.deliver(source, 1000);
    const auto [min, max] =
        std::minmax({node.sent(sources[0]), node.sent(sources[1]), node.sent(sources[2])});
    REQUIRE(max - min <= kBatch);
  }
  CHECK(node.sent(sources[0]) > 600);
}

TEST_CASE("a source that starts later catches up, and others do not wait for ever") {
  Node node;
  const SourceIndex early = node.add();
  const SourceIndex late = node.add();
  const auto transfer = [&](int round_trips) {
    for (int n = 0; n < round_trips; ++n) {
      node.run(kRoundTrip);
      node.deliver(early, 50'000);
      node.deliver(late, 50'000);
    }
  };
  node.announce(early, 50'000);
  transfer(500);
  REQUIRE(node.sent(early) > 4000);
  const std::uint32_t before = node.sent(early);
  node.announce(late, 50'000);
  transfer(50);
  CHECK(node.sent(late) > 450);
  CHECK(node.sent(early) < before + 30);
  transfer(250);
  // The late source gets all grants until it is 1024 blocks behind, and then half of them.
  CHECK(node.sent(early) > before + 900);
  CHECK(node.sent(late) < 2200);
}

TEST_CASE("a lost grant is said again after a round trip of silence, each time less often") {
  Node node;
  const SourceIndex source = node.add();
  node.announce(source, 2);
  const auto first = node.run(Duration::us(50));
  REQUIRE(first.size() == 1);
  REQUIRE(first[0].total_blocks == 2);
  CHECK(node.run(kRoundTrip).empty());
  const auto again = node.run(Duration::ms(4));
  REQUIRE_FALSE(again.empty());
  CHECK(again[0].total_blocks == 2);
  CHECK(again.size() >= 3);
  CHECK(again.size() <= 6);
  CHECK(node.grants.stats(node.now).keep_alives == again.size());
  // The grant was not lost, but the source was silent. Its next packet gives it no more credit than
  // before.
  node.data(source, 1, 1);
  CHECK(node.outstanding() == 1);
}

TEST_CASE("credit that is not used expires, and others get the window") {
  Node node;
  const SourceIndex silent = node.add();
  const SourceIndex busy = node.add();
  node.announce(silent, 1000);
  node.run(Duration::ms(1));
  REQUIRE(node.outstanding() >= kWindow - kBatch);
  node.announce(busy, 100'000);
  for (int n = 0; n < 100; ++n) {
    node.run(kRoundTrip);
    node.deliver(busy, 100'000);
  }
  CHECK(node.grants.view(silent).outstanding_blocks == 0);
  CHECK(node.grants.stats(node.now).expired_blocks >= kWindow - kBatch);
  CHECK(node.sent(busy) > 400);  // the silent source held the window for 5 of 10 ms
  // The source wakes. Its packets count against the credit, which was not given twice.
  const std::uint32_t total = node.grants.view(silent).total_blocks;
  node.data(silent, total - 1, 500);
  CHECK(node.grants.view(silent).outstanding_blocks <= 1);
  node.data(silent, total, 500);
  node.run(kRoundTrip);
  CHECK(node.totals[silent] > total);
}

TEST_CASE("a source that let credit expire uses that first") {
  Node node;
  const SourceIndex source = node.add();
  node.announce(source, 1000);
  node.run(Duration::ms(6));
  const std::uint32_t had = node.totals[source];
  REQUIRE(node.outstanding() == 0);
  node.data(source, 1, 999);
  CHECK(node.run(Duration::us(50)).empty());
  node.deliver(source, 900);
  node.run(Duration::us(50));
  CHECK(node.totals[source] > had);
}

TEST_CASE("a source that lost all that it sent gets a block more to show it") {
  Node node;
  const SourceIndex source = node.add();
  node.announce(source, 100);
  node.run(Duration::ms(6));  // the credit has expired
  const std::uint32_t had = node.totals[source];
  node.run(Duration::ms(50));
  CHECK(node.totals[source] > had);
  CHECK(node.totals[source] < had + 40);
  CHECK(node.outstanding() == 0);
}

TEST_CASE("lost packets are outstanding until later ones have proved it for a while") {
  Node node;
  const SourceIndex source = node.add();
  node.announce(source, 8);
  node.run(Duration::us(99));
  REQUIRE(node.totals[source] == 8);
  node.data(source, 6, 2);
  CHECK(node.outstanding() == 7);  // five sent or lost, two to come
  node.data(source, 3, 5);         // late, so its demand is old
  CHECK(node.outstanding() == 6);
  CHECK(node.grants.view(source).sent_blocks == 6);
  node.run(Duration::us(150));
  CHECK(node.outstanding() == 6);
  node.run(Duration::us(100));
  CHECK(node.outstanding() == 2);
  CHECK(node.grants.stats(node.now).lost_blocks == 4);
}

TEST_CASE("an early close returns the credit at once, and is not held up by old demand") {
  Node node;
  const SourceIndex closed = node.add();
  const SourceIndex other = node.add();
  node.announce(closed, 1000);
  node.run(Duration::us(300));
  REQUIRE(node.outstanding() >= kWindow - kBatch);
  node.announce(other, 1000);
  node.grants.withdraw(closed, node.now);
  CHECK(node.outstanding() == 0);
  node.run(Duration::us(90));
  CHECK(node.grants.view(other).outstanding_blocks >= 8);
  // A packet that was under way says that more blocks wait. One batch is risked on that.
  node.data(closed, 2, 900);
  node.deliver(other, 1000);
  node.run(Duration::us(200));
  CHECK(node.grants.view(closed).outstanding_blocks <= kMaxWithdrawn);
  CHECK(node.grants.view(other).outstanding_blocks >= kWindow - 2 * kBatch);
}

TEST_CASE("after an early close old demand gets one batch, and none gets nothing") {
  Node node;
  const SourceIndex source = node.add();
  node.announce(source, 1000);
  node.run(Duration::us(150));
  node.deliver(source, 1000);
  const std::uint32_t had = node.totals[source];
  node.grants.withdraw(source, node.now);
  CHECK(node.run(Duration::us(50)).empty());
  CHECK(node.grants.next_time(node.now) == Instant::never());
  node.announce(source, 900);
  node.run(Duration::us(150));
  CHECK(node.totals[source] == had + kBatch);
  node.announce(source, 900);  // a round trip later the demand is new
  node.run(Duration::us(150));
  CHECK(node.totals[source] > had + kMaxWithdrawn + 4);
}

TEST_CASE("pressure of the receive ring halves the pace for a while") {
  Node node;
  const SourceIndex source = node.add();
  node.announce(source, 100'000);
  const auto blocks_of_10_ms = [&] {
    const std::uint32_t before = node.totals[source];
    for (int n = 0; n < 1000; ++n) {
      node.deliver(source, 100'000);
      node.run(Duration::us(10));
    }
    return node.totals[source] - before;
  };
  CHECK(blocks_of_10_ms() > 970);
  node.grants.on_ring_pressure(node.now);
  CHECK(node.grants.stats(node.now).pressed);
  const std::uint32_t pressed = blocks_of_10_ms();
  CHECK(pressed < 510);
  CHECK(pressed > 480);
  CHECK(node.grants.stats(node.now).limit == Limit::kPressure);
  blocks_of_10_ms();
  CHECK(blocks_of_10_ms() > 970);
}
