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
using grants::SourceIndex;

namespace {

constexpr Instant kStart = Instant::from_ns(1'000'000'000);
constexpr std::size_t kBlock = 1250;
constexpr std::uint64_t kLink = 1'000'000'000;
constexpr SourceIndex kFirst{0};
constexpr SourceIndex kSecond{1};
constexpr SourceIndex kIdle{1};  // the only source of a second job

/// A window with the round trip `min` without queues, and a present round trip of `smoothed`.
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

/// What happens to the packets of a source.
struct Path {
  bool marked = false;
  std::uint32_t lost_every = 0;  // one packet of so many is lost; 0: none
};

/// One job for each source. A source's packets arrive `delay` after their grants, as many as the
/// grants allow. An idle job makes the scheduler give grants.
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

  /// Runs for `time`. `paths` has the path of each source.
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
  CHECK(senders.pace() > 0.3);  // one reduction per round trip
  senders.run(Duration::ms(300), {{.marked = true}});
  CHECK(senders.pace() < 0.02);
  CHECK(senders.pace() >= 0.01);
  senders.run(Duration::ms(10), {{}});
  CHECK(senders.pace() < 0.5);
  senders.run(Duration::ms(200), {{}});
  CHECK(senders.pace() == 1.0);
}

TEST_CASE("heavy losses slow the pace, random ones do not") {
  Senders senders(1, Duration::ms(5));  // a round trip with many losses
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

TEST_CASE("blocks that were granted before the pace fell do not lower it again") {
  Senders senders(1, Duration::ms(5));
  while (senders.pace() == 1) senders.run(Duration::us(100), {{.lost_every = 3}});
  const double pace = senders.pace();
  senders.run(Duration::ms(9), {{.lost_every = 3}});
  CHECK(senders.pace() == pace);
  senders.run(Duration::ms(50), {{.lost_every = 3}});
  CHECK(senders.pace() < pace);
}

TEST_CASE("losses that one job alone sees slow no pace") {
  Senders senders(2, Duration::ms(5));
  senders.run(Duration::ms(300), {{.lost_every = 3}, {}});
  CHECK(senders.grants.stats(senders.now).lost_blocks > 100);
  CHECK(senders.pace() == 1.0);
}

TEST_CASE("the pace recovers though a job sends too little for a verdict on its losses") {
  Senders senders(1, Duration::ms(1));
  while (senders.pace() == 1) senders.run(Duration::ms(1), {{.lost_every = 3}});
  std::uint32_t sent = 0;
  for (int n = 0; n < 300; ++n) {
    senders.grants.on_data(kIdle, ++sent, 0, kBlock, false, senders.now);
    senders.run(Duration::ms(1), {{}});
  }
  CHECK(senders.pace() == 1.0);
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
}

TEST_CASE("what may be on its way is the round trip and three quarters of the buffer") {
  const auto blocks = [](std::uint64_t link, std::size_t buffer, Duration min) {
    return window_of(
               {.link_bits_per_second = link, .buffer_bytes = buffer, .block_wire_bytes = kBlock},
               Duration::us(100), Duration::us(1000))
        .max_in_flight_blocks(min, kStart);
  };
  CHECK(blocks(kLink, 40 * kBlock, Duration::us(100)) == 40);
  CHECK(blocks(kLink, 40 * kBlock, Duration::us(400)) == 70);  // for this path, not the mean
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
  CHECK(blocks() == first);  // the window was not full
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
  CHECK(total <= 63);  // one of 64 blocks needs no grant
  CHECK(grants.stats(kStart).limit == GrantScheduler::Limit::kWindow);
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

TEST_CASE("blocks with implausible counts are served like others, and in their job's turn") {
  GrantScheduler grants = scheduler(3, 3);
  testing::add_idle_job(grants, JobIndex{2});
  const SourceIndex honest = *grants.add_source(JobIndex{0});
  const SourceIndex liar = *grants.add_source(JobIndex{1});
  Instant now = kStart;
  std::uint32_t count = 0;
  const auto give = [&](SourceIndex source) {
    return grants.view(source).total_blocks - grants.view(source).sent_blocks;
  };
  std::uint32_t granted = 0;  // granted to the liar
  for (int n = 0; n < 2000; ++n) {
    now = now + Duration::us(100);
    if (n == 0) grants.on_data(honest, 1, 1000, kBlock, false, now);
    for (int packet = 0; packet < 2; ++packet) {
      grants.on_data(liar, count += 1U << 30, 1000, kBlock, false, now);
    }
    while (grants.next_grant(now)) {
    }
    granted += give(liar);
    for (std::uint32_t sent = give(honest); sent > 0; --sent) {
      grants.on_data(honest, grants.view(honest).sent_blocks + 1, 1000, kBlock, false, now);
    }
  }
  REQUIRE(grants.stats(now).implausible > 3000);
  CHECK(grants.view(honest).sent_blocks > granted + 3000);
}

TEST_CASE("a sender whose unscheduled blocks were all lost but the last is plausible") {
  GrantScheduler grants({.link_bits_per_second = 10'000'000'000,
                         .block_wire_bytes = kBlock,
                         .max_sources = 1,
                         .max_jobs = 1});
  const SourceIndex far = *grants.add_source(JobIndex{0});
  grants.on_rtt(far, Duration::ms(65));
  grants.on_data(far, 1, 100'000, kBlock, false, kStart);
  const std::uint32_t blocks = grants.unscheduled_blocks(far);
  REQUIRE(blocks > 60'000);
  grants.on_data(far, 1 + blocks, 100'000, kBlock, false, kStart);
  CHECK(grants.stats(kStart).implausible == 0);
}

TEST_CASE("blocks with old counts take their part of the link") {
  GrantScheduler grants = scheduler(3, 3);
  testing::add_idle_job(grants, JobIndex{2});
  const SourceIndex honest = *grants.add_source(JobIndex{0});
  const SourceIndex late = *grants.add_source(JobIndex{1});
  Instant now = kStart;
  grants.on_rtt(honest, Duration::us(100));
  grants.on_data(honest, 1, 1000, kBlock, false, now);
  grants.on_data(late, 100, 0, kBlock, false, now);
  for (int n = 0; n < 1000; ++n) {
    for (std::uint32_t packet = 0; packet < 4; ++packet) {
      grants.on_data(late, 50 + packet, 0, kBlock, false, now);
    }
    for (int step = 0; step < 10; ++step) {
      now = now + Duration::us(10);
      while (grants.next_grant(now)) {
      }
    }
    for (std::uint32_t sent = grants.view(honest).sent_blocks;
         sent != grants.view(honest).total_blocks;) {
      grants.on_data(honest, ++sent, 1000, kBlock, false, now);
    }
  }
  // The link carries ten blocks in a round trip. Four of them come from the other source.
  CHECK(grants.view(honest).sent_blocks <= 10'000 * 0.65);
  CHECK(grants.view(honest).sent_blocks >= 10'000 * 0.5);
}

TEST_CASE("blocks that arrive late are no losses, and count as having arrived") {
  GrantScheduler grants = scheduler(2, 2);
  testing::add_idle_job(grants, JobIndex{1});
  const SourceIndex source = *grants.add_source(JobIndex{0});
  grants.on_rtt(source, Duration::us(100));
  Instant now = kStart;
  grants.on_data(source, 1, 1000, kBlock, false, now);
  for (int n = 0; n < 2000; ++n) {
    now = now + Duration::us(100);
    while (grants.next_grant(now)) {
    }
    const std::uint32_t total = grants.view(source).total_blocks;
    for (std::uint32_t sent = grants.view(source).sent_blocks + 1; sent + 1 <= total; sent += 2) {
      grants.on_data(source, sent + 1, 1000, kBlock, false, now);
      if (sent % 16 > 1) grants.on_data(source, sent, 1000, kBlock, false, now);
    }
  }
  CHECK(grants.stats(now).lost_blocks > 500);
  CHECK(grants.stats(now).pace == 1);
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
    // The liars use a tenth of the link, whatever counts they send.
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
  // The link carries 20000 blocks, so a fair half is 10000.
  CHECK(sent > 9000);
  CHECK(grants.stats(now).implausible > 0);
}
