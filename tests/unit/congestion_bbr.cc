// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// BBR against the values of its Internet draft, on simulated paths.
#include <deque>

#include "dataplane/congestion/bbr.h"
#include "dataplane/congestion/reno.h"
#include "tests/sim/dice.h"
#include "tests/support/catch.h"
#include "tests/support/congestion.h"

using namespace gradplane;
using namespace gradplane::testing;
using congestion::Bbr;
using congestion::Reno;

namespace {

constexpr Duration kRtt = Duration::ms(1);
constexpr congestion::Path kPath = {.link_bits_per_second = kLinkBitsPerSecond,
                                    .block_wire_bytes = kBlockWireBytes};

/// A bottleneck with a queue that serves one packet after the other, in virtual time.
struct Bottleneck {
  Duration base = Duration::ms(10);
  double blocks_per_second = 10'000;
  double loss = 0;
  std::uint64_t delivered = 0;

  /// Runs for `time` and returns the time of its end.
  Instant run(congestion::Controller& c, Instant now, Duration time) {
    const Instant end = now + time;
    while (now < end) {
      send_all(c, now);
      now = std::min(next(c), end);
      hear(c, now);
    }
    return now;
  }

 private:
  struct Packet {
    Instant acked_at;
    Instant sent_at;
    bool lost;
  };

  void send_all(congestion::Controller& c, Instant now) {
    while (true) {
      const congestion::Decision d = c.decide(now);
      if (is_full(d)) return;
      if (d.pacing_bits_per_second > 0 && free_at_ > now) return;
      c.on_sent(now, kBlockWireBytes, static_cast<std::uint32_t>(flight_.size()));
      if (d.pacing_bits_per_second > 0) {
        free_at_ = std::max(free_at_, now) +
                   Duration::ns(static_cast<std::int64_t>(
                       kBlockWireBytes * 8e9 / static_cast<double>(d.pacing_bits_per_second)));
      }
      link_free_ = std::max(link_free_, now) +
                   Duration::ns(static_cast<std::int64_t>(1e9 / blocks_per_second));
      const bool lost = loss > 0 && dice_.below(1'000'000) < static_cast<std::uint64_t>(loss * 1e6);
      flight_.push_back({link_free_ + base, now, lost});
    }
  }

  bool is_full(const congestion::Decision& d) const {
    return flight_.size() >= static_cast<std::size_t>(std::max(1.0, d.window_blocks));
  }

  Instant next(const congestion::Controller& c) const {
    const congestion::Decision d = c.decide(link_free_);
    if (flight_.empty()) return free_at_;
    return is_full(d) ? flight_.front().acked_at : std::min(flight_.front().acked_at, free_at_);
  }

  void hear(congestion::Controller& c, Instant now) {
    while (!flight_.empty() && flight_.front().acked_at <= now) {
      const Packet packet = flight_.front();
      const auto in_flight = static_cast<std::uint32_t>(flight_.size());
      flight_.pop_front();
      const Duration rtt = now - packet.sent_at;
      if (packet.lost) {
        lose(c, now, rtt, 1);
        continue;
      }
      ++delivered;
      least_ = least_ == Duration() ? rtt : std::min(least_, rtt);
      c.on_ack({.now = now,
                .acked_blocks = 1,
                .in_flight_blocks = in_flight,
                .rtt = rtt,
                .smoothed_rtt = rtt,
                .min_rtt = least_});
    }
  }

  std::deque<Packet> flight_;
  Instant free_at_ = kControllerStart;
  Instant link_free_ = kControllerStart;
  Duration least_;
  sim::Dice dice_{1};
};

}  // namespace

TEST_CASE("BBR finds rate and round trip of a path, and holds twice what it holds") {
  Bbr bbr(kPath);
  Bottleneck path;
  Instant now = path.run(bbr, kControllerStart, Duration::seconds(3));
  CHECK(bbr.bottleneck_rate() == Approx(10'000).epsilon(0.05));
  CHECK(bbr.round_trip() == Duration::us(10'100));
  CHECK(window_of(bbr, now) == Approx(202 + 40).epsilon(0.06));
  path.delivered = 0;
  path.run(bbr, now, Duration::seconds(2));
  CHECK(path.delivered > 19'000);  // of 20000
}

TEST_CASE("acks that come bundled are no faster network than what was sent") {
  Bbr bbr(kPath);
  constexpr Duration kTrip = Duration::ms(10);
  constexpr Duration kRound = Duration::ms(14);  // a round trip and the delay of a held ack
  std::uint32_t in_flight = 0;
  Instant now = kControllerStart;
  const auto send = [&](std::uint32_t blocks) {
    for (; blocks > 0; --blocks) bbr.on_sent(now, kBlockWireBytes, in_flight++);
  };
  const auto hear = [&](std::uint32_t blocks) {
    bbr.on_ack({.now = now,
                .acked_blocks = blocks,
                .in_flight_blocks = in_flight,
                .rtt = kTrip,
                .smoothed_rtt = kTrip,
                .min_rtt = kTrip});
    in_flight -= blocks;
  };
  send(300);
  for (int n = 0; n < 2; ++n) {
    now = now + kRound;
    hear(2);
    send(10);
  }
  now = now + kRound;
  hear(290);
  CHECK(bbr.bottleneck_rate() == Approx(10 / kRound.to_seconds()));
}

TEST_CASE("BBR measures a round trip anew that it has not seen for ten seconds") {
  Bbr bbr(kPath);
  Instant now = kControllerStart;
  const auto busy_for = [&](Duration time, Duration rtt) {
    Duration drained;  // how long the window was the smallest
    for (const Instant end = now + time; now < end; now = now + rtt) {
      // Blocks are always in flight, so no idle time lets BBR measure the round trip.
      for (std::uint32_t n = 0; n < 10; ++n) bbr.on_sent(now, kBlockWireBytes, 20 + n);
      bbr.on_ack({.now = now,
                  .acked_blocks = 10,
                  .in_flight_blocks = 30,
                  .rtt = rtt,
                  .smoothed_rtt = rtt,
                  .min_rtt = rtt});
      if (window_of(bbr, now) == 4) drained = drained + rtt;
    }
    return drained;
  };
  bbr.on_sent(now, kBlockWireBytes, 0);
  busy_for(Duration::ms(200), Duration::ms(10));
  CHECK(bbr.round_trip() == Duration::ms(10));
  CHECK(busy_for(Duration::ms(9700), Duration::ms(12)) == Duration());
  CHECK(bbr.round_trip() == Duration::ms(10));
  const Duration drained = busy_for(Duration::ms(800), Duration::ms(12));
  CHECK(drained >= Duration::ms(200));
  CHECK(drained <= Duration::ms(230));
  CHECK(bbr.round_trip() == Duration::ms(12));
  CHECK(window_of(bbr, now) > 4);
}

TEST_CASE("random loss does not shrink BBR; Reno has nearly nothing left") {
  const auto goodput = [](congestion::Controller& c) {
    Bottleneck path;
    path.loss = 0.03;
    path.run(c, kControllerStart, Duration::seconds(3));
    return static_cast<double>(path.delivered) / 3;
  };
  Bbr bbr(kPath);
  Reno reno;
  CHECK(goodput(bbr) > 0.85 * 10'000);
  CHECK(goodput(reno) < 0.25 * 10'000);
}

TEST_CASE("a loss leaves BBR as it is; silence takes it to four blocks until an ack comes") {
  Bbr bbr(kPath);
  Bottleneck path;
  const Instant now = path.run(bbr, kControllerStart, Duration::seconds(1));
  const double before = window_of(bbr, now);
  lose(bbr, now, kRtt, 1000);
  CHECK(window_of(bbr, now) == before);
  fall_silent(bbr, now, kRtt);
  CHECK(window_of(bbr, now) == 4);
  bbr.on_ack({.now = now + kRtt,
              .acked_blocks = 1,
              .in_flight_blocks = 1,
              .rtt = {},
              .smoothed_rtt = {},
              .min_rtt = {}});
  CHECK(window_of(bbr, now) > 100);
}

TEST_CASE("BBR grows in bursts that each end with an ack of all") {
  Bbr bbr(kPath);
  Instant now = kControllerStart;
  for (int n = 0; n < 6; ++n) {
    const auto blocks = static_cast<std::uint32_t>(window_of(bbr, now));
    for (std::uint32_t b = 0; b < blocks; ++b) bbr.on_sent(now, kBlockWireBytes, b);
    now = now + Duration::us(200);
    bbr.on_ack({.now = now,
                .acked_blocks = blocks,
                .in_flight_blocks = blocks,
                .rtt = Duration::us(200),
                .smoothed_rtt = Duration::us(200),
                .min_rtt = Duration::us(200)});
  }
  CHECK(window_of(bbr, now) > 500);
}
