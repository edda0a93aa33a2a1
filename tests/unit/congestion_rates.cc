// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Controllers of a rate or a delay against the numbers of their own papers; MLTCP.
#include <cmath>
#include <deque>

#include "dataplane/congestion/bbr.h"
#include "dataplane/congestion/dcqcn.h"
#include "dataplane/congestion/mltcp.h"
#include "dataplane/congestion/reno.h"
#include "dataplane/congestion/swift.h"
#include "tests/sim/dice.h"
#include "tests/support/catch.h"
#include "tests/support/congestion.h"

using namespace gradplane;
using namespace gradplane::testing;
using congestion::Bbr;
using congestion::Dcqcn;
using congestion::Mltcp;
using congestion::Reno;
using congestion::Swift;

namespace {

constexpr Duration kRtt = Duration::ms(1);
constexpr congestion::Path kPath = {.link_bits_per_second = kLinkBitsPerSecond,
                                    .block_wire_bytes = kBlockWireBytes};

congestion::AckEvent measured(Instant now, Duration rtt, Duration min_rtt) {
  return {.now = now,
          .acked_blocks = 0,
          .in_flight_blocks = 1,
          .rtt = rtt,
          .smoothed_rtt = rtt,
          .min_rtt = min_rtt};
}

congestion::AckEvent mark(Instant now) {
  return {.now = now,
          .acked_blocks = 1,
          .in_flight_blocks = 1,
          .marked_blocks = 1,
          .rtt = {},
          .smoothed_rtt = {},
          .min_rtt = {}};
}

/// A bottleneck with a queue, one packet after the other, in virtual time.
struct Bottleneck {
  Duration base = Duration::ms(10);
  double blocks_per_second = 10'000;
  double loss = 0;
  std::uint64_t delivered = 0;

  /// Runs for so long; returns the time then.
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

TEST_CASE("DCQCN starts at the line and a first notification halves it") {
  Dcqcn dcqcn(kPath);
  CHECK(dcqcn.rate_bits_per_second() == 1e9);
  dcqcn.on_ack(mark(kControllerStart));
  CHECK(dcqcn.rate_bits_per_second() == 0.5e9);
  CHECK(dcqcn.alpha() == 1);
  CHECK(dcqcn.decide(kControllerStart).pacing_bits_per_second == 500'000'000);
}

TEST_CASE("DCQCN comes back by halves, then by a thousandth of the line") {
  Dcqcn dcqcn(kPath);
  dcqcn.on_ack(mark(kControllerStart));
  Instant now = kControllerStart;
  double expected = 0.5e9;
  for (int n = 1; n <= 5; ++n) {  // F rounds of fast recovery
    now = now + Duration::us(55);
    REQUIRE(dcqcn.next_tick() == now);
    dcqcn.on_tick(now);
    expected = (expected + 1e9) / 2;
    CHECK(dcqcn.rate_bits_per_second() == Approx(expected));
    CHECK(dcqcn.alpha() == Approx(std::pow(255.0 / 256, n)));
  }
  // Cut again: now the target is below the line, and grows by R_AI.
  const double alpha = dcqcn.alpha();
  const double target = dcqcn.rate_bits_per_second();
  dcqcn.on_ack(mark(now));
  CHECK(dcqcn.rate_bits_per_second() == Approx(target * (1 - alpha / 2)));
  CHECK(dcqcn.alpha() == Approx(alpha * 255 / 256 + 1.0 / 256));
  double rate = dcqcn.rate_bits_per_second();
  for (int n = 1; n <= 5; ++n) {
    dcqcn.on_tick(now = now + Duration::us(55));
    rate = (rate + target) / 2;
  }
  CHECK(dcqcn.rate_bits_per_second() == Approx(rate));
  dcqcn.on_tick(now = now + Duration::us(55));
  CHECK(dcqcn.rate_bits_per_second() == Approx((rate + target + 1e6) / 2));
}

TEST_CASE("DCQCN's byte counter raises the rate as its timer does") {
  Dcqcn dcqcn(kPath);
  dcqcn.on_ack(mark(kControllerStart));
  // 2 ms of 1 Gbit/s: 250000 bytes, in less than a period of the timer.
  for (int n = 0; n < 167; ++n) dcqcn.on_sent(kControllerStart, kBlockWireBytes, 1);
  CHECK(dcqcn.rate_bits_per_second() == 0.75e9);
}

TEST_CASE("DCQCN's hyper increase needs both counters past F, and MLTCP scales both increases") {
  const auto target_after = [](double gain, bool bytes_too) {
    Dcqcn dcqcn(kPath);
    dcqcn.set_gain(gain);
    Instant now = kControllerStart;
    // Down to where the line is far away.
    for (int n = 0; n < 6; ++n) dcqcn.on_ack(mark(now = now + Duration::us(50)));
    const double low = dcqcn.rate_bits_per_second();
    for (int n = 0; n < 6; ++n) {
      if (bytes_too) {
        for (int b = 0; b < 167; ++b) dcqcn.on_sent(now, kBlockWireBytes, 1);
      }
      dcqcn.on_tick(now = now + Duration::us(55));
    }
    return dcqcn.rate_bits_per_second() - low;
  };
  // The sixth round of both: one R_AI that is halved twice, and one R_HAI, halved once.
  CHECK(target_after(2, true) == Approx(target_after(1, true) + 0.75e6 + 5e6));
  CHECK(target_after(2, false) == Approx(target_after(1, false) + 0.5e6));
}

TEST_CASE("Swift adds a block in a round trip under its target") {
  Swift swift(kPath);
  Instant now = kControllerStart;
  const double first = window_of(swift, now);
  for (int n = 1; n <= 20; ++n) {
    now = round_trip(swift, now, kRtt);
    CHECK(window_of(swift, now) == Approx(first + n).epsilon(0.03));
  }
  CHECK(swift.decide(now).pacing_bits_per_second == 0);
}

TEST_CASE("Swift takes back 0.8 of the share by which a delay is too long, at most half") {
  Swift swift(kPath);
  const Instant now = round_trips(swift, kControllerStart, kRtt, 200);
  double before = window_of(swift, now);
  REQUIRE(before > 100);
  const Duration target = swift.target(kRtt);
  CHECK(target == kRtt + Duration::us(500));  // no scaling for so large a window
  swift.on_ack(measured(now, target * 5 / 4, kRtt));
  CHECK(window_of(swift, now) == Approx(before * (1 - 0.8 * 0.2)));
  before = window_of(swift, now);
  swift.on_ack(measured(now + kRtt / 2, target * 5, kRtt));
  CHECK(window_of(swift, now) == before);  // once in a round trip
  swift.on_ack(measured(now + kRtt * 2, target * 100, kRtt));
  CHECK(window_of(swift, now) == Approx(before / 2));
}

TEST_CASE("small windows of Swift tolerate a longer queue, and less than a block is paced") {
  Swift swift(kPath);
  const Duration roomy = swift.target(kRtt);
  Instant now = kControllerStart;
  while (window_of(swift, now) > 0.25) {
    now = now + Duration::ms(100);
    swift.on_ack(measured(now, Duration::ms(100), kRtt));
  }
  CHECK(swift.target(kRtt) > roomy);
  CHECK(swift.target(kRtt) <= kRtt + Duration::us(3000));
  // 0.25 blocks in 100 ms: one in 400.
  const congestion::Decision d = swift.decide(now);
  CHECK(d.window_blocks == 0.25);
  CHECK(d.pacing_bits_per_second == kBlockWireBytes * 8 * 10 / 4);
  for (int n = 0; n < 10; ++n) fall_silent(swift, now = now + Duration::seconds(1), kRtt);
  CHECK(window_of(swift, now) == congestion::kMinWindow);
}

TEST_CASE("no delay, loss or silence takes Swift below the smallest window") {
  Swift swift(kPath);
  Instant now = kControllerStart;
  for (int n = 0; n < 40; ++n) {
    now = now + Duration::seconds(1);
    swift.on_ack(measured(now, Duration::ms(100), kRtt));
  }
  CHECK(window_of(swift, now) == congestion::kMinWindow);
  // A hundredth of a block in 100 ms.
  CHECK(swift.decide(now).pacing_bits_per_second == kBlockWireBytes * 8 / 10);
  for (int n = 0; n < 3; ++n) {
    lose(swift, now = now + Duration::seconds(1), kRtt, 10);
    CHECK(window_of(swift, now) == congestion::kMinWindow);
    fall_silent(swift, now = now + Duration::seconds(1), kRtt);
    CHECK(window_of(swift, now) == congestion::kMinWindow);
  }
}

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
  constexpr Duration kRound = Duration::ms(14);  // a round trip, and an ack that was held back
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
    Duration drained;  // how long it had the smallest window
    for (const Instant end = now + time; now < end; now = now + rtt) {
      // A pipe that is never empty, so that no pause shows the round trip.
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
  bbr.on_ack(mark(now + kRtt));
  CHECK(window_of(bbr, now) > 100);
}

TEST_CASE("a fixed rate that nobody knows is no rate") {
  const auto unknown = controller_of(ControllerKind::kFixed, 0);
  CHECK(unknown->decide(kControllerStart).pacing_bits_per_second == 100'000'000);
  const auto none = congestion::make_controller({.controller = ControllerKind::kFixed, .mltcp = {}},
                                                {.link_bits_per_second = 0});
  CHECK(none->decide(kControllerStart).pacing_bits_per_second == 0);
  CHECK(none->decide(kControllerStart).window_blocks == congestion::kMaxWindow);
}

TEST_CASE("DCQCN never exceeds the line, nor falls below a thousandth of it") {
  Dcqcn dcqcn(kPath);
  Instant now = kControllerStart;
  for (int n = 0; n < 100; ++n) dcqcn.on_ack(mark(now = now + Duration::us(50)));
  CHECK(dcqcn.rate_bits_per_second() >= 1e6);
  for (int n = 0; n < 1000; ++n) {
    for (int b = 0; b < 167; ++b) dcqcn.on_sent(now, kBlockWireBytes, 1);
    dcqcn.on_tick(now = now + Duration::us(55));
    REQUIRE(dcqcn.rate_bits_per_second() <= 1e9);
  }
  CHECK(dcqcn.rate_bits_per_second() == Approx(1e9));
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

TEST_CASE("MLTCP's function goes from 0.25 to 2, whatever the ratio") {
  constexpr MltcpFunction kPaper;
  CHECK(kPaper.at(0) == 0.25);
  CHECK(kPaper.at(0.5) == 1.125);
  CHECK(kPaper.at(1) == 2);
  CHECK(kPaper.at(7) == 2);
  CHECK(kPaper.at(-1) == 0.25);
  CHECK(kPaper.at(std::nan("")) == 0.25);
}

TEST_CASE("MLTCP scales what is added by how far the iteration is, and no reduction") {
  const auto added = [](double ratio) {
    Mltcp mltcp(std::make_unique<Reno>(), {});
    Instant now = round_trips(mltcp, kControllerStart, kRtt, 3);
    lose(mltcp, now, kRtt, 1);
    REQUIRE(window_of(mltcp, now) == 40);
    mltcp.on_phase({.ratio = ratio});
    now = round_trip(mltcp, now, kRtt);
    return window_of(mltcp, now) - 40;
  };
  CHECK(added(0) == Approx(0.25).margin(0.01));
  CHECK(added(0.5) == Approx(1.125).margin(0.03));
  CHECK(added(1) == Approx(2).margin(0.06));
}
