// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <deque>
#include <random>
#include <vector>

#include "dataplane/grants/grant_scheduler.h"
#include "tests/support/catch.h"
#include "tests/support/idle_job.h"

using namespace gradplane;
using grants::GrantScheduler;
using grants::GrantWindow;
using grants::JobIndex;
using grants::SourceCap;
using grants::SourceIndex;

namespace {

constexpr Instant kStart = Instant::from_ns(1'000'000'000);
constexpr std::size_t kBlock = 1250;
constexpr std::uint64_t kLink = 1'000'000'000;
constexpr SourceIndex kFirst{0};
constexpr SourceIndex kSecond{1};

/// A window whose round trip is `min` without queues, and `smoothed` now.
GrantWindow window_of(GrantWindow::Limits limits, Duration min, Duration smoothed) {
  GrantWindow window(limits);
  grants::RoundTrip round_trip;
  round_trip.add(min, kStart);
  for (int n = 0; n < 200; ++n) round_trip.add(smoothed, kStart);
  window.on_round_trip(round_trip);
  return window;
}

GrantScheduler scheduler(std::size_t sources, std::size_t jobs, std::size_t buffer_blocks = 20) {
  return GrantScheduler({.link_bits_per_second = kLink,
                         .buffer_bytes = buffer_blocks * kBlock,
                         .block_wire_bytes = kBlock,
                         .max_sources = sources,
                         .max_jobs = jobs});
}

/// What happens to a source's packets on their way.
struct Path {
  bool marked = false;
  std::uint32_t lost_every = 0;  // so many; 0: none
};

/// A job per source, whose packets arrive `delay` after their grants and are as many as those
/// allow; and an idle job, so that there are grants.
class Senders {
 public:
  explicit Senders(std::size_t jobs, Duration delay = Duration::us(100))
      : grants(scheduler(jobs + 1, jobs + 1)), delay_(delay), sent_(jobs) {
    for (std::size_t job = 0; job < jobs; ++job) {
      const SourceIndex source = *grants.add_source(JobIndex::from_index(job));
      grants.on_rtt(source, delay);
      grants.on_data(source, 0, kDemand, kBlock, false, now);
    }
    testing::add_idle_job(grants, JobIndex::from_index(jobs));
  }

  /// For so long, with the paths of the sources.
  void run(Duration time, const std::vector<Path>& paths) {
    for (const Instant end = now + time; now < end; now = now + Duration::us(5)) {
      while (const auto grant = grants.next_grant(now)) arriving_.push_back({now, *grant});
      for (; !arriving_.empty() && now - arriving_.front().at >= delay_; arriving_.pop_front()) {
        arrive(arriving_.front().grant, paths[arriving_.front().grant.source.index()]);
      }
    }
  }
  double pace() const { return grants.stats(now).pace; }

  GrantScheduler grants;
  Instant now = kStart;

 private:
  static constexpr std::uint32_t kDemand = 1000;
  struct Given {
    Instant at;
    GrantScheduler::Grant grant;
  };
  void arrive(const GrantScheduler::Grant& grant, const Path& path) {
    for (std::uint32_t& sent = sent_[grant.source.index()]; sent < grant.total_blocks;) {
      ++sent;
      if (path.lost_every > 0 && sent % path.lost_every == 0) continue;
      grants.on_data(grant.source, sent, kDemand, kBlock, path.marked, now);
    }
  }

  Duration delay_;
  std::deque<Given> arriving_;
  std::vector<std::uint32_t> sent_;
};

}  // namespace

TEST_CASE("marks slow the pace, by and by, and it recovers") {
  Senders senders(1);
  senders.run(Duration::ms(5), {{}});
  CHECK(senders.pace() == 1.0);
  senders.run(Duration::ms(2), {{.marked = true}});
  CHECK(senders.pace() < 0.95);
  CHECK(senders.pace() > 0.3);  // one step per round trip
  senders.run(Duration::ms(300), {{.marked = true}});
  CHECK(senders.pace() < 0.02);
  CHECK(senders.pace() >= 0.01);
  senders.run(Duration::ms(10), {{}});
  CHECK(senders.pace() < 0.5);
  senders.run(Duration::ms(200), {{}});
  CHECK(senders.pace() == 1.0);
}

TEST_CASE("heavy losses slow the pace, random ones do not") {
  Senders senders(1, Duration::ms(5));  // long enough for many losses in one
  senders.run(Duration::ms(200), {{.lost_every = 30}});
  CHECK(senders.grants.stats(senders.now).lost_blocks > 100);
  CHECK(senders.pace() == 1.0);
  senders.run(Duration::ms(100), {{.lost_every = 3}});
  CHECK(senders.pace() < 0.8);
}

TEST_CASE("a job that alone sees congestion slows only itself") {
  Senders senders(2);
  senders.run(Duration::ms(20), {{.marked = true}, {}});
  CHECK(senders.pace() == 1.0);
  CHECK(senders.grants.view(kFirst).cap_blocks <= 4);
  CHECK(senders.grants.view(kSecond).cap_blocks == UINT32_MAX);
  CHECK(senders.grants.view(kSecond).sent_blocks > 2 * senders.grants.view(kFirst).sent_blocks);
  senders.run(Duration::ms(5), {{.marked = true}, {.marked = true}});
  CHECK(senders.pace() < 1.0);
}

TEST_CASE("the window covers the round trip, as far as the buffer holds it") {
  const auto blocks = [](std::uint64_t link, std::size_t buffer, Duration smoothed) {
    return window_of(
               {.link_bits_per_second = link, .buffer_bytes = buffer, .block_wire_bytes = kBlock},
               Duration::us(100), smoothed)
        .blocks(kStart);
  };
  // 100 us at 1 Gbit/s are 10 blocks.
  CHECK(blocks(kLink, 3 * kBlock, Duration::us(100)) == 13);
  CHECK(blocks(kLink, 1000 * kBlock, Duration::us(100)) == 15);
  CHECK(blocks(kLink, 1000 * kBlock, Duration::us(401)) == 60);
  CHECK(blocks(kLink, 20 * kBlock, Duration::us(401)) == 30);
  CHECK(blocks(1'000'000, 1, Duration::us(100)) == 2);
}

TEST_CASE("round trips are averaged over blocks, so slow senders count for what they send") {
  GrantWindow window(
      {.link_bits_per_second = kLink, .buffer_bytes = 10 * kBlock, .block_wire_bytes = kBlock});
  grants::RoundTrip near;
  near.add(Duration::us(100), kStart);
  grants::RoundTrip far;
  far.add(Duration::us(1100), kStart);
  for (int n = 0; n < 1000; ++n) window.on_round_trip(n % 10 == 0 ? far : near);
  CHECK(window.round_trip() > Duration::us(160));
  CHECK(window.round_trip() < Duration::us(240));
  CHECK(window.blocks(kStart) >= 26);
  CHECK(window.blocks(kStart) <= 34);
}

TEST_CASE("what may be on its way is the round trip and three quarters of the buffer") {
  const auto blocks = [](std::uint64_t link, std::size_t buffer, Duration min) {
    return window_of(
               {.link_bits_per_second = link, .buffer_bytes = buffer, .block_wire_bytes = kBlock},
               Duration::us(100), Duration::us(1000))
        .max_in_flight_blocks(min, kStart);
  };
  CHECK(blocks(kLink, 40 * kBlock, Duration::us(100)) == 40);
  CHECK(blocks(kLink, 40 * kBlock, Duration::us(400)) == 70);  // of the asked path, not the mean
  CHECK(blocks(kLink, 4 * kBlock, Duration()) == 3);
  CHECK(blocks(1'000'000, 1, Duration::us(100)) == 1);
  const std::size_t assumed = GrantWindow::kAssumedBufferBytes;
  CHECK(blocks(kLink, 0, Duration::us(100)) == blocks(kLink, assumed, Duration::us(100)));
}

TEST_CASE(
    "over a link that is not known the window grows while it is full, and shrinks with losses") {
  GrantWindow window =
      window_of({.block_wire_bytes = kBlock}, Duration::us(100), Duration::us(1001));
  const auto blocks = [&] { return window.max_in_flight_blocks(Duration::us(100), kStart); };
  const std::uint32_t first = blocks();
  CHECK(first == 64);
  window.end_epoch({}, kStart);
  CHECK(blocks() == first);  // it was not full
  for (int n = 0; n < 10; ++n) {
    window.on_full();
    window.end_epoch({}, kStart);
  }
  const std::uint32_t grown = blocks();
  CHECK(grown > first);
  window.on_full();
  window.end_epoch({.lossy = true}, kStart);
  CHECK(blocks() == grown);
  window.end_epoch({.mark_cut = 0.5, .lossy = true}, kStart);
  CHECK(blocks() < grown);
  for (int n = 0; n < 200; ++n) {
    window.on_full();
    window.end_epoch({}, kStart);
  }
  CHECK(blocks() > 100 * first);
  CHECK(blocks() <= 1024 * first);
}

TEST_CASE("over a link that is not known the window stops growing where a queue shows") {
  GrantWindow window = window_of({.block_wire_bytes = kBlock}, Duration::us(100), Duration::ms(9));
  window.on_full();
  window.end_epoch({}, kStart);
  CHECK(window.max_in_flight_blocks(Duration::us(100), kStart) == 64);
}

TEST_CASE("a link that is not known is not paced") {
  GrantScheduler grants({.block_wire_bytes = kBlock, .max_sources = 2, .max_jobs = 2});
  testing::add_idle_job(grants, JobIndex{1});
  const SourceIndex source = *grants.add_source(JobIndex{0});
  grants.on_data(source, 0, 1000, kBlock, false, kStart);
  std::uint32_t total = 0;
  while (const auto grant = grants.next_grant(kStart)) total = grant->total_blocks;
  CHECK(total >= 48);
  CHECK(total <= 63);  // of 64, one needs no grant
  CHECK(grants.stats(kStart).limit == GrantScheduler::Limit::kWindow);
}

TEST_CASE("credit that waits at its sender caps the sender's credit at what it can use") {
  SourceCap cap;
  CHECK(cap.blocks() == UINT32_MAX);
  Instant now = kStart;
  cap.on_granted(10, 10, 10, now);
  CHECK(cap.round_trip_sample(0, now) == std::nullopt);
  CHECK(cap.round_trip_sample(1, now + Duration::us(90)) == Duration::us(90));
  CHECK(cap.round_trip_sample(2, now + Duration::us(95)) == std::nullopt);
  cap.on_used(9, Duration::us(100), 64, now + Duration::us(500));
  CHECK(cap.blocks() == UINT32_MAX);
  cap.on_used(10, Duration::us(100), 64, now + Duration::us(125));
  CHECK(cap.blocks() == 8);
  for (std::uint32_t total = 18; cap.blocks() < 64; total += 8) {
    cap.on_granted(8, total, cap.blocks(), now);
    cap.on_used(total, Duration::us(100), 64, now + Duration::us(50));
    REQUIRE(total < 200);
  }
  CHECK(cap.blocks() == UINT32_MAX);
  cap.on_expired(20);
  CHECK(cap.blocks() == 10);
  for (int n = 0; n < 10; ++n) cap.on_expired(20);
  CHECK(cap.blocks() == SourceCap::kMin);
}

TEST_CASE("sources and jobs are bounded, and a new source knows nothing of the last") {
  GrantScheduler grants = scheduler(3, 3);
  CHECK(grants.add_source(JobIndex{3}) == std::nullopt);
  const SourceIndex first = *grants.add_source(JobIndex{0});
  const SourceIndex second = *grants.add_source(JobIndex{1});
  CHECK(first != second);
  testing::add_idle_job(grants, JobIndex{2});
  CHECK(grants.add_source(JobIndex{0}) == std::nullopt);
  grants.on_data(first, 1, 1000, kBlock, false, kStart);
  REQUIRE(grants.next_grant(kStart + Duration::ms(1)));
  grants.remove_source(first);
  CHECK(grants.stats(kStart).outstanding_blocks == 0);
  CHECK(grants.stats(kStart).window_used == 0);
  CHECK_FALSE(grants.next_grant(kStart + Duration::ms(2)));
  CHECK(grants.next_time(kStart + Duration::ms(2)) == Instant::never());
  const SourceIndex again = *grants.add_source(JobIndex{1});
  CHECK(again == first);
  CHECK(grants.view(again).total_blocks == 0);
  CHECK(grants.view(again).job == JobIndex{1});
}

TEST_CASE("hostile numbers take nothing from others") {
  GrantScheduler grants = scheduler(4, 3, 100);
  testing::add_idle_job(grants, JobIndex{2});
  const SourceIndex honest = *grants.add_source(JobIndex{0});
  const std::vector<SourceIndex> liars = {*grants.add_source(JobIndex{1}),
                                          *grants.add_source(JobIndex{1})};
  std::mt19937 random(7);
  Instant now = kStart;
  std::uint32_t sent = 0;
  std::uint32_t total = 0;
  for (int n = 0; n < 20'000; ++n) {
    now = now + Duration::us(10);
    const auto lie = static_cast<std::uint32_t>(random() >> (random() % 32));
    const SourceIndex liar = liars[n % 2];
    const std::uint32_t count = grants.view(liar).sent_blocks + (random() % 2 == 0 ? lie : 0 - lie);
    // A tenth of the link is theirs, whatever they say.
    if (n % 10 == 0) {
      grants.on_data(liar, count, static_cast<std::uint32_t>(random()), kBlock, true, now);
    }
    if (n % 1000 == 0) {
      grants.on_rtt(liar, Duration::ns(static_cast<std::int64_t>(random() << (random() % 32))));
    }
    if (sent < total) {
      ++sent;
      grants.on_data(honest, sent, 1000, kBlock, false, now);
    } else if (n == 0) {
      grants.on_data(honest, 0, 1000, kBlock, false, now);
    }
    while (const auto grant = grants.next_grant(now)) {
      if (grant->source == honest) total = grant->total_blocks;
    }
    REQUIRE(grants.stats(now).outstanding_blocks <= 1000);
  }
  // Of 20000 block times a fair half is 10000.
  CHECK(sent > 9000);
  CHECK(grants.stats(now).implausible > 0);
}
