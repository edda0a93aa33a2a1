// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <deque>
#include <random>
#include <vector>

#include "dataplane/grants/grant_scheduler.h"
#include "tests/support/catch.h"

using namespace gradplane;
using grants::GrantScheduler;
using grants::GrantWindow;
using grants::SourceCap;
using Source = GrantScheduler::Source;

namespace {

constexpr Instant kStart = Instant::from_ns(1'000'000'000);
constexpr std::size_t kBlock = 1250;
constexpr std::uint64_t kLink = 1'000'000'000;

/// A window whose loop is `least` without queues, and `smoothed` now.
GrantWindow window_of(GrantWindow::Limits limits, Duration least, Duration smoothed) {
  GrantWindow window(limits);
  grants::LoopTime loop;
  loop.add(least, kStart);
  for (int n = 0; n < 200; ++n) loop.add(smoothed, kStart);
  window.on_loop(loop);
  return window;
}

GrantScheduler scheduler(std::size_t sources, std::size_t jobs) {
  return GrantScheduler({.link_bits_per_second = kLink,
                         .buffer_bytes = 100 * kBlock,
                         .block_wire_bytes = kBlock,
                         .max_sources = sources,
                         .max_jobs = jobs});
}

/// What happens to a source's packets on their way.
struct Path {
  bool marked = false;
  std::uint32_t lost_every = 0;  // so many; 0: none
};

/// A job per source, whose packets come `delay` after their grants and are as many as those allow.
class Loop {
 public:
  explicit Loop(std::size_t jobs, Duration delay = Duration::us(100))
      : grants(scheduler(jobs, jobs)), delay_(delay), sent_(jobs) {
    for (std::uint16_t job = 0; job < jobs; ++job) {
      const Source source = *grants.add_source(job);
      grants.on_data(source, 0, kDemand, kBlock, false, now);
    }
  }

  /// For so long, with the paths of the sources.
  void run(Duration time, const std::vector<Path>& paths) {
    for (const Instant end = now + time; now < end; now = now + Duration::us(5)) {
      while (const auto grant = grants.next_grant(now)) arriving_.push_back({now, *grant});
      for (; !arriving_.empty() && now - arriving_.front().at >= delay_; arriving_.pop_front()) {
        come(arriving_.front().grant, paths[arriving_.front().grant.source]);
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
  void come(const GrantScheduler::Grant& grant, const Path& path) {
    for (std::uint32_t& sent = sent_[grant.source]; sent < grant.total_blocks;) {
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
  Loop loop(1);
  loop.run(Duration::ms(5), {{}});
  CHECK(loop.pace() == 1.0);
  loop.run(Duration::ms(2), {{.marked = true}});
  CHECK(loop.pace() < 0.95);
  CHECK(loop.pace() > 0.3);  // one step per round trip
  loop.run(Duration::ms(300), {{.marked = true}});
  CHECK(loop.pace() < 0.02);
  CHECK(loop.pace() >= 0.01);
  loop.run(Duration::ms(10), {{}});
  CHECK(loop.pace() < 0.5);
  loop.run(Duration::ms(200), {{}});
  CHECK(loop.pace() == 1.0);
}

TEST_CASE("heavy losses slow the pace, random ones do not") {
  Loop loop(1, Duration::ms(5));  // long enough for many losses in one
  loop.run(Duration::ms(200), {{.lost_every = 30}});
  CHECK(loop.grants.stats(loop.now).lost_blocks > 100);
  CHECK(loop.pace() == 1.0);
  loop.run(Duration::ms(100), {{.lost_every = 3}});
  CHECK(loop.pace() < 0.8);
}

TEST_CASE("a job that alone sees congestion slows only itself") {
  Loop loop(2);
  loop.run(Duration::ms(20), {{.marked = true}, {}});
  CHECK(loop.pace() == 1.0);
  CHECK(loop.grants.view(0).cap_blocks <= 4);
  CHECK(loop.grants.view(1).cap_blocks == UINT32_MAX);
  CHECK(loop.grants.view(1).sent_blocks > 2 * loop.grants.view(0).sent_blocks);
  loop.run(Duration::ms(5), {{.marked = true}, {.marked = true}});
  CHECK(loop.pace() < 1.0);
}

TEST_CASE("the window is what covers the loop, or what the buffer holds of it") {
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

TEST_CASE("loops are averaged over blocks, so slow senders count for what they send") {
  GrantWindow window(
      {.link_bits_per_second = kLink, .buffer_bytes = 10 * kBlock, .block_wire_bytes = kBlock});
  grants::LoopTime near;
  near.add(Duration::us(100), kStart);
  grants::LoopTime far;
  far.add(Duration::us(1100), kStart);
  for (int n = 0; n < 1000; ++n) window.on_loop(n % 10 == 0 ? far : near);
  CHECK(window.loop() > Duration::us(160));
  CHECK(window.loop() < Duration::us(240));
  CHECK(window.blocks(kStart) >= 26);
  CHECK(window.blocks(kStart) <= 34);
}

TEST_CASE("unscheduled blocks of all who start at once are a window, and fit the buffer") {
  const auto each = [](std::size_t buffer, std::size_t senders) {
    return window_of(
               {.link_bits_per_second = kLink, .buffer_bytes = buffer, .block_wire_bytes = kBlock},
               Duration::us(400), Duration::us(400))
        .unscheduled_blocks(senders);
  };
  // 40 blocks are under way in a loop, so the window is 60.
  CHECK(each(40 * kBlock, 1) == 60);
  CHECK(each(40 * kBlock, 0) == 60);
  CHECK(each(40 * kBlock, 2) == 30);
  CHECK(each(400 * kBlock, 2) == 30);
  CHECK(each(10 * kBlock, 1) == 50);
  CHECK(each(10 * kBlock, 2) == 10);
  CHECK(each(10 * kBlock, 6) == 2);
  CHECK(each(10 * kBlock, 1000) == 1);
}

TEST_CASE("a buffer that is not known is learned: more while it is used, less after losses") {
  GrantWindow window = window_of({.link_bits_per_second = kLink, .block_wire_bytes = kBlock},
                                 Duration::us(100), Duration::us(1001));
  const std::uint32_t first = window.blocks(kStart);
  CHECK(first == 15);
  window.end_epoch({}, kStart);
  CHECK(window.blocks(kStart) == first);  // it was not used
  for (int n = 0; n < 10; ++n) {
    window.on_full();
    window.end_epoch({}, kStart);
  }
  const std::uint32_t grown = window.blocks(kStart);
  CHECK(grown > first);
  window.on_full();
  window.end_epoch({.lossy = true}, kStart);
  CHECK(window.blocks(kStart) == grown);
  window.end_epoch({.mark_cut = 0.5, .lossy = true}, kStart);
  CHECK(window.blocks(kStart) < grown);
  for (int n = 0; n < 100; ++n) {
    window.on_full();
    window.end_epoch({}, kStart);
  }
  CHECK(window.blocks(kStart) == 150);  // 1.5 loops: more would only be a queue
}

TEST_CASE("a link that is not known is not paced") {
  GrantScheduler grants({.block_wire_bytes = kBlock, .max_sources = 1, .max_jobs = 1});
  const Source source = *grants.add_source(0);
  grants.on_data(source, 0, 1000, kBlock, false, kStart);
  std::uint32_t total = 0;
  while (const auto grant = grants.next_grant(kStart)) total = grant->total_blocks;
  CHECK(total >= 60);
  CHECK(total <= 64);
  CHECK(grants.stats(kStart).limit == GrantScheduler::Limit::kWindow);
}

TEST_CASE("credit that waits at its sender caps the sender's credit at what it can use") {
  SourceCap cap;
  CHECK(cap.blocks() == UINT32_MAX);
  Instant now = kStart;
  cap.on_granted(10, 10, 10, now);
  CHECK(cap.loop_sample(0, now) == std::nullopt);
  CHECK(cap.loop_sample(1, now + Duration::us(90)) == Duration::us(90));
  CHECK(cap.loop_sample(2, now + Duration::us(95)) == std::nullopt);
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
  CHECK(cap.blocks() == SourceCap::kLeast);
}

TEST_CASE("sources and jobs are bounded, and a new source knows nothing of the last") {
  GrantScheduler grants = scheduler(2, 2);
  CHECK(grants.add_source(2) == std::nullopt);
  const Source first = *grants.add_source(0);
  const Source second = *grants.add_source(1);
  CHECK(first != second);
  CHECK(grants.add_source(0) == std::nullopt);
  grants.on_data(first, 1, 1000, kBlock, false, kStart);
  REQUIRE(grants.next_grant(kStart + Duration::ms(1)));
  grants.remove_source(first);
  CHECK(grants.stats(kStart).outstanding_blocks == 0);
  CHECK_FALSE(grants.next_grant(kStart + Duration::ms(2)));
  CHECK(grants.next_time(kStart + Duration::ms(2)) == Instant::never());
  const Source again = *grants.add_source(1);
  CHECK(again == first);
  CHECK(grants.view(again).total_blocks == 0);
  CHECK(grants.view(again).job == 1);
}

TEST_CASE("hostile numbers take nothing from others") {
  GrantScheduler grants = scheduler(3, 2);
  const Source honest = *grants.add_source(0);
  const std::vector<Source> liars = {*grants.add_source(1), *grants.add_source(1)};
  std::mt19937 random(7);
  Instant now = kStart;
  std::uint32_t sent = 0;
  std::uint32_t total = 0;
  for (int n = 0; n < 20'000; ++n) {
    now = now + Duration::us(10);
    const auto lie = static_cast<std::uint32_t>(random() >> (random() % 32));
    const Source liar = liars[n % 2];
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
