// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Controllers of a rate and controllers by delay, against the numbers of their papers; MLTCP.
#include <cmath>

#include "dataplane/congestion/dcqcn.h"
#include "dataplane/congestion/mltcp.h"
#include "dataplane/congestion/reno.h"
#include "dataplane/congestion/swift.h"
#include "tests/support/catch.h"
#include "tests/support/congestion.h"

using namespace gradplane;
using namespace gradplane::testing;
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
  for (int n = 1; n <= 5; ++n) {  // the F rounds of fast recovery
    now = now + Duration::us(55);
    REQUIRE(dcqcn.next_tick() == now);
    dcqcn.on_tick(now);
    expected = (expected + 1e9) / 2;
    CHECK(dcqcn.rate_bits_per_second() == Approx(expected));
    CHECK(dcqcn.alpha() == Approx(std::pow(255.0 / 256, n)));
  }
  // A second mark: the target is now below the line rate, so it grows by R_AI.
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
  // 167 blocks are the 250000 bytes that 1 Gbit/s carries in 2 ms. No time passes, so only the byte
  // counter acts.
  for (int n = 0; n < 167; ++n) dcqcn.on_sent(kControllerStart, kBlockWireBytes, 1);
  CHECK(dcqcn.rate_bits_per_second() == 0.75e9);
}

TEST_CASE("DCQCN's hyper increase needs both counters past F, and MLTCP scales both increases") {
  const auto target_after = [](double gain, bool bytes_too) {
    Dcqcn dcqcn(kPath);
    dcqcn.set_gain(gain);
    Instant now = kControllerStart;
    // Marks take the rate far below the line rate, so that the line rate does not limit the target.
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
  // The sixth event of the byte counter adds R_AI, and that of the timer adds R_HAI. The rate then
  // halves its distance to the target, so it gets three quarters of the first and half of the
  // second.
  CHECK(target_after(2, true) == Approx(target_after(1, true) + 0.75e6 + 5e6));
  CHECK(target_after(2, false) == Approx(target_after(1, false) + 0.5e6));
}

TEST_CASE("DCQCN follows a link that changes its rate") {
  Dcqcn dcqcn(kPath);
  dcqcn.set_link_rate(200'000'000);
  CHECK(dcqcn.rate_bits_per_second() == 0.2e9);  // no mark has reduced the rate
  dcqcn.set_link_rate(2'000'000'000);
  CHECK(dcqcn.rate_bits_per_second() == 2e9);
  Instant now = kControllerStart;
  dcqcn.on_ack(mark(now));
  CHECK(dcqcn.rate_bits_per_second() == 1e9);
  // A faster link does not raise a reduced rate, and no rate exceeds the link.
  dcqcn.set_link_rate(4'000'000'000);
  CHECK(dcqcn.rate_bits_per_second() == 1e9);
  dcqcn.set_link_rate(500'000'000);
  CHECK(dcqcn.rate_bits_per_second() == 0.5e9);
  for (int n = 0; n < 20; ++n) dcqcn.on_tick(now = now + Duration::us(55));
  CHECK(dcqcn.rate_bits_per_second() == 0.5e9);
  // DCQCN takes a link of an unknown rate for one of 1 Gbit/s.
  dcqcn.set_link_rate(0);
  CHECK(dcqcn.rate_bits_per_second() == 1e9);
}

TEST_CASE("DCQCN that was reduced grows to the rate of a faster link") {
  Dcqcn dcqcn({.link_bits_per_second = 100'000'000, .block_wire_bytes = kBlockWireBytes});
  Instant now = kControllerStart;
  dcqcn.on_ack(mark(now));
  dcqcn.set_link_rate(kLinkBitsPerSecond);
  CHECK(dcqcn.rate_bits_per_second() == 0.05e9);
  for (int n = 0; n < 5; ++n) dcqcn.on_tick(now = now + Duration::us(55));
  // The target is still the line rate of the link before.
  const double rate = dcqcn.rate_bits_per_second();
  dcqcn.on_tick(now = now + Duration::us(55));
  CHECK(dcqcn.rate_bits_per_second() == Approx((rate + 0.1e9 + 1e6) / 2));
  for (int n = 0; n < 2000; ++n) dcqcn.on_tick(now = now + Duration::us(55));
  CHECK(dcqcn.rate_bits_per_second() == Approx(1e9));
}

TEST_CASE("Swift's target follows a link that changes its rate") {
  const auto target_at = [](std::uint64_t rate) {
    const Swift swift({.link_bits_per_second = rate, .block_wire_bytes = kBlockWireBytes});
    return swift.target(kRtt);
  };
  Swift swift(kPath);
  REQUIRE(target_at(10'000'000) > target_at(kLinkBitsPerSecond));
  for (const std::uint64_t rate : {std::uint64_t{10'000'000}, kLinkBitsPerSecond,
                                   std::uint64_t{1'000'000}, std::uint64_t{0}}) {
    swift.set_link_rate(rate);
    CHECK(swift.target(kRtt) == target_at(rate));
  }
}

TEST_CASE("on a link of an unknown rate Swift tolerates a queue as long as the path, up to 10 ms") {
  const Swift swift({.link_bits_per_second = 0, .block_wire_bytes = kBlockWireBytes});
  const auto queue = [&](Duration rtt) { return swift.target(rtt) - rtt; };
  CHECK(queue(Duration::us(100)) == queue(Duration::us(500)));
  // A block takes 6 ms at 2 Mbit/s, so no round trip there is shorter. One block in the queue
  // doubles it.
  CHECK(queue(Duration::ms(6)) >= Duration::ms(6));
  CHECK(queue(Duration::ms(20)) == queue(Duration::ms(10)));
}

TEST_CASE("Swift does not take the queue on the way back for one on the way there") {
  Swift swift(kPath);
  const Instant now = round_trips(swift, kControllerStart, kRtt, 20);
  const double before = window_of(swift, now);
  congestion::AckEvent back = measured(now, kRtt * 20, kRtt);
  back.queueing = Duration();
  swift.on_ack(back);
  CHECK(window_of(swift, now) == before);
  back.queueing = kRtt * 20;
  swift.on_ack(back);
  CHECK(window_of(swift, now) < before);
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
  CHECK(target == kRtt + Duration::us(500));  // the window is too large for scaling
  swift.on_ack(measured(now, target * 5 / 4, kRtt));
  CHECK(window_of(swift, now) == Approx(before * (1 - 0.8 * 0.2)));
  before = window_of(swift, now);
  swift.on_ack(measured(now + kRtt / 2, target * 5, kRtt));
  CHECK(window_of(swift, now) == before);  // one reduction in a round trip
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
  // 0.25 blocks in 100 ms: one block in 400 ms.
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
  // The smallest window is a hundredth of a block, in a round trip of 100 ms.
  CHECK(swift.decide(now).pacing_bits_per_second == kBlockWireBytes * 8 / 10);
  for (int n = 0; n < 3; ++n) {
    lose(swift, now = now + Duration::seconds(1), kRtt, 10);
    CHECK(window_of(swift, now) == congestion::kMinWindow);
    fall_silent(swift, now = now + Duration::seconds(1), kRtt);
    CHECK(window_of(swift, now) == congestion::kMinWindow);
  }
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
