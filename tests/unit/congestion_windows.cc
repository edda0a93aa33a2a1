// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Controllers of a window, against the numbers of their papers.
#include <cmath>

#include "dataplane/congestion/cubic.h"
#include "dataplane/congestion/dctcp.h"
#include "dataplane/congestion/reno.h"
#include "tests/support/catch.h"
#include "tests/support/congestion.h"

using namespace gradplane;
using namespace gradplane::testing;
using congestion::Cubic;
using congestion::Dctcp;
using congestion::Reason;
using congestion::Reno;

namespace {

constexpr Duration kRtt = Duration::ms(1);
constexpr Duration kLong = Duration::ms(100);

}  // namespace

TEST_CASE("Reno doubles, halves, and then adds one block in each round trip") {
  Reno reno;
  CHECK(window_of(reno, kControllerStart) == 10);
  CHECK(reno.stats().reason == Reason::kStart);
  Instant now = round_trips(reno, kControllerStart, kRtt, 3);
  CHECK(window_of(reno, now) == 80);
  lose(reno, now, kRtt, 1);
  CHECK(window_of(reno, now) == 40);
  CHECK(reno.stats().reason == Reason::kLoss);
  for (int n = 1; n <= 20; ++n) {
    now = round_trip(reno, now, kRtt);
    CHECK(window_of(reno, now) == Approx(40 + n).margin(0.5));
  }
  CHECK(reno.stats().reason == Reason::kGrowth);
}

TEST_CASE("to Reno a mark is a loss, and silence takes it to one block and half its threshold") {
  Reno reno;
  Instant now = round_trips(reno, kControllerStart, kRtt, 3);
  now = round_trip(reno, now, kRtt, true);
  CHECK(window_of(reno, now) == 40);
  CHECK(reno.stats().reason == Reason::kMark);
  now = now + kRtt;
  fall_silent(reno, now, kRtt);
  CHECK(window_of(reno, now) == 1);
  now = round_trips(reno, now, kRtt, 4);
  CHECK(window_of(reno, now) == 16);  // slow start
  now = round_trip(reno, now, kRtt);
  CHECK(window_of(reno, now) == Approx(20).margin(1));  // at half of 40, slow start ends
  CHECK(reno.stats().reductions == 2);
}

TEST_CASE("an outage of many timeouts costs the threshold once") {
  Reno reno;
  Instant now = round_trips(reno, kControllerStart, kRtt, 3);
  for (int n = 0; n < 20; ++n) {
    now = now + Duration::ms(40);
    fall_silent(reno, now, kRtt);
  }
  now = round_trips(reno, now + kRtt, kRtt, 6);
  CHECK(window_of(reno, now) >= 40);  // slow start goes on to half of 80

  Cubic cubic;
  now = round_trips(cubic, kControllerStart, kRtt, 3);
  const double before = window_of(cubic, now);
  for (int n = 0; n < 20; ++n) {
    now = now + Duration::ms(40);
    fall_silent(cubic, now, kRtt);
  }
  now = round_trips(cubic, now + kRtt, kRtt, 7);
  CHECK(window_of(cubic, now) >= before * 0.6);
}

TEST_CASE("what was sent before a reduction and is found lost after it costs nothing more") {
  Reno reno;
  Instant now = round_trips(reno, kControllerStart, kRtt, 3);
  const Instant sent = now;
  fall_silent(reno, now = now + Duration::ms(40), kRtt);
  // The link works again. An answer to a probe proves that the whole window was lost.
  lose(reno, now = now + Duration::ms(10), kRtt, 70, sent);
  CHECK(reno.stats().reductions == 1);
  now = round_trips(reno, now, kRtt, 6);
  CHECK(window_of(reno, now) >= 40);  // slow start goes on to half of 80

  Cubic cubic;
  now = round_trips(cubic, kControllerStart, kRtt, 3);
  lose(cubic, now, kRtt, 1);
  lose(cubic, now + Duration::ms(10), kRtt, 10, now - Duration::us(1));
  CHECK(window_of(cubic, now) == Approx(0.7 * 80));
  lose(cubic, now + Duration::ms(11), kRtt, 1, now);
  CHECK(window_of(cubic, now) == Approx(0.7 * 0.7 * 80));
}

TEST_CASE("slow start ends at the threshold, however much one ack tells of") {
  Reno reno;
  Instant now = round_trips(reno, kControllerStart, kRtt, 2);
  fall_silent(reno, now, kRtt);
  now = round_trips(reno, now + kRtt, kRtt, 4);
  REQUIRE(window_of(reno, now) == 16);
  reno.on_ack({.now = now,
               .acked_blocks = 16,
               .in_flight_blocks = 16,
               .rtt = kRtt,
               .smoothed_rtt = kRtt,
               .min_rtt = kRtt});
  CHECK(window_of(reno, now) == 20);
}

TEST_CASE("Reno does not grow in the round trip of a reduction") {
  Reno reno;
  const Instant now = round_trips(reno, kControllerStart, kRtt, 3);
  lose(reno, now, kRtt, 1);
  reno.on_ack({.now = now + kRtt / 2,
               .acked_blocks = 40,
               .in_flight_blocks = 40,
               .rtt = kRtt,
               .smoothed_rtt = kRtt,
               .min_rtt = kRtt});
  CHECK(window_of(reno, now) == 40);
}

TEST_CASE("CUBIC follows W_cubic") {
  Cubic cubic;
  Instant now = round_trips(cubic, kControllerStart, kLong, 6);
  const double top = window_of(cubic, now);
  REQUIRE(top == 640);
  lose(cubic, now, kLong, 1);
  CHECK(window_of(cubic, now) == Approx(0.7 * top));
  // The curve begins at the first ack.
  now = round_trip(cubic, now, kLong);
  const Instant epoch = now;
  const double k = std::cbrt(top * 0.3 / 0.4);
  for (int n = 0; n < 150; ++n) {
    now = round_trip(cubic, now, kLong);
    const double t = (now - epoch).to_seconds();
    const double expected = 0.4 * std::pow(t - k, 3) + top;
    INFO("after " << t << " s");
    REQUIRE(window_of(cubic, now) == Approx(expected).epsilon(0.02));
  }
  CHECK((now - epoch).to_seconds() > 1.8 * k);
}

TEST_CASE("CUBIC is never slower than Reno with its own reduction") {
  Cubic cubic;
  Instant now = round_trips(cubic, kControllerStart, kRtt, 2);
  REQUIRE(window_of(cubic, now) == 40);
  lose(cubic, now, kRtt, 1);
  // RFC 9438, section 4.3: the window grows by 3 (1 - 0.7) / (1 + 0.7) blocks in a round trip up to
  // 40 blocks, then by one.
  constexpr double kAlpha = 0.9 / 1.7;
  double expected = 28;
  for (int n = 0; n < 100; ++n) {
    now = round_trip(cubic, now, kRtt);
    expected += expected < 40 ? kAlpha : 1;
    REQUIRE(window_of(cubic, now) == Approx(expected).epsilon(0.05));
  }
}

TEST_CASE("CUBIC leaves room for others when it did not get back to where it was") {
  Cubic cubic;
  Instant now = round_trips(cubic, kControllerStart, kLong, 6);
  lose(cubic, now, kLong, 1);
  now = round_trips(cubic, now, kLong, 3);
  const double second = window_of(cubic, now);
  REQUIRE(second < 640);
  lose(cubic, now, kLong, 1);
  round_trip(cubic, now, kLong);
  // W_max is 0.85 of the window at the loss. The curve reaches W_max after K.
  const double k = std::cbrt((0.85 - 0.7) * second / 0.4);
  const auto after = Duration::us(static_cast<std::int64_t>(k * 1e6));
  CHECK(cubic.cubic_window(after) == Approx(0.85 * second).epsilon(0.001));
  CHECK(cubic.cubic_window(Duration()) == Approx(0.7 * second).epsilon(0.001));
}

TEST_CASE("CUBIC's gain is on what it adds on its curve") {
  const auto added_by_ack = [](double gain) {
    Cubic cubic;
    Instant now = round_trips(cubic, kControllerStart, kLong, 6);
    lose(cubic, now, kLong, 1);
    now = round_trips(cubic, now, kLong, 5);  // above Reno's window
    const double before = window_of(cubic, now);
    cubic.set_gain(gain);
    cubic.on_ack({.now = now,
                  .acked_blocks = 1,
                  .in_flight_blocks = 640,
                  .rtt = kLong,
                  .smoothed_rtt = kLong,
                  .min_rtt = kLong});
    return window_of(cubic, now) - before;
  };
  CHECK(added_by_ack(0.5) == Approx(0.5 * added_by_ack(1)));
  CHECK(added_by_ack(2) == Approx(2 * added_by_ack(1)));
}

TEST_CASE("CUBIC's gain is on all that it adds") {
  const auto added = [](double gain) {
    Cubic cubic;
    cubic.set_gain(gain);
    Instant now = round_trips(cubic, kControllerStart, kLong, 6);
    lose(cubic, now, kLong, 1);
    now = round_trip(cubic, now, kLong);
    return window_of(cubic, now) - 0.7 * 640;
  };
  CHECK(added(2) > 1.2 * added(1));
  CHECK(added(2) < 2.1 * added(1));
}

TEST_CASE("CUBIC takes at most half of its window more in a round trip") {
  Cubic cubic;
  Instant now = round_trips(cubic, kControllerStart, kLong, 6);
  lose(cubic, now, kLong, 1);
  now = round_trips(cubic, now, kLong, 3);
  const double before = window_of(cubic, now);
  const auto blocks = static_cast<std::uint32_t>(before) + 1;
  // The target is the curve's value one round trip ahead.
  const Duration far = Duration::seconds(1000);
  cubic.on_ack({.now = now,
                .acked_blocks = blocks,
                .in_flight_blocks = blocks,
                .rtt = far,
                .smoothed_rtt = far,
                .min_rtt = kLong});
  CHECK(window_of(cubic, now) == Approx(1.5 * before));
}

TEST_CASE("pauses without demand are no time to CUBIC, however short") {
  const auto window_with = [](Duration pause) {
    Cubic cubic;
    Instant now = round_trips(cubic, kControllerStart, kLong, 6);
    lose(cubic, now, kLong, 1);
    for (int n = 0; n < 20; ++n) now = round_trip(cubic, now, kLong) + pause;
    return window_of(cubic, now);
  };
  const double busy = window_with({});
  REQUIRE(busy > 500);
  CHECK(window_with(Duration::ms(1)) == Approx(busy));
  CHECK(window_with(Duration::ms(100)) == Approx(busy));
  CHECK(window_with(Duration::ms(190)) == Approx(busy));
}

TEST_CASE("a window that is not used, and a rest, are no time to CUBIC") {
  // A window of 28 blocks that is not used for a minute does not grow.
  Cubic cubic;
  Instant now = round_trips(cubic, kControllerStart, kRtt, 2);
  lose(cubic, now, kRtt, 1);
  now = round_trip(cubic, now, kRtt);
  for (int n = 0; n < 600; ++n) {
    cubic.on_sent(now, kBlockWireBytes, 1);
    now = now + Duration::ms(100);
    cubic.on_ack({.now = now,
                  .acked_blocks = 1,
                  .in_flight_blocks = 1,
                  .rtt = kRtt,
                  .smoothed_rtt = kRtt,
                  .min_rtt = kRtt});
  }
  double before = window_of(cubic, now);
  CHECK(before < 30);
  now = round_trip(cubic, now, kRtt);
  CHECK(window_of(cubic, now) < before + 1);

  // A small window goes on from the same size after a minute without packets.
  Cubic small;
  now = kControllerStart;
  lose(small, now, kRtt, 1);
  now = round_trip(small, now, kRtt);
  before = window_of(small, now);
  REQUIRE(before < 10);
  now = round_trip(small, now + Duration::seconds(60), kRtt);
  CHECK(window_of(small, now) < before + 1);
}

TEST_CASE("CUBIC begins a new curve after silence") {
  Cubic cubic;
  Instant now = round_trips(cubic, kControllerStart, kRtt, 5);
  fall_silent(cubic, now, kRtt);
  CHECK(window_of(cubic, now) == 1);
  now = round_trips(cubic, now + kRtt, kRtt, 30);
  CHECK(window_of(cubic, now) >= 224);  // slow start goes on to 0.7 of 320
}

TEST_CASE("DCTCP's alpha is the share of blocks that are marked of late") {
  Dctcp dctcp;
  CHECK(dctcp.alpha() == 1);
  Instant now = kControllerStart;
  for (int n = 0; n < 4000; ++n) {  // in each round trip, one of four acks is marked
    dctcp.on_ack({.now = now,
                  .acked_blocks = 4,
                  .in_flight_blocks = 16,
                  .marked_blocks = n % 4 == 0 ? 4U : 0U,
                  .rtt = kRtt,
                  .smoothed_rtt = kRtt,
                  .min_rtt = kRtt});
    now = now + kRtt / 4;
  }
  CHECK(dctcp.alpha() == Approx(0.25).margin(0.001));
  // Ten round trips without marks reduce alpha by a sixteenth each.
  for (int n = 0; n < 41; ++n) {
    dctcp.on_ack({.now = now,
                  .acked_blocks = 4,
                  .in_flight_blocks = 16,
                  .rtt = kRtt,
                  .smoothed_rtt = kRtt,
                  .min_rtt = kRtt});
    now = now + kRtt / 4;
  }
  CHECK(dctcp.alpha() == Approx(0.25 * std::pow(15.0 / 16, 10)).epsilon(0.08));
}

TEST_CASE("DCTCP's alpha moves by a sixteenth of what is new") {
  Dctcp dctcp;
  Instant now = kControllerStart;
  const auto window_of_data = [&](bool marked) {
    for (int n = 0; n < 2; ++n) {
      dctcp.on_ack({.now = now,
                    .acked_blocks = 4,
                    .in_flight_blocks = 8,
                    .marked_blocks = marked ? 4U : 0U,
                    .rtt = kRtt,
                    .smoothed_rtt = kRtt,
                    .min_rtt = kRtt});
      now = now + kRtt / 2;
    }
  };
  window_of_data(false);
  for (int n = 1; n <= 10; ++n) {
    window_of_data(false);
    CHECK(dctcp.alpha() == Approx(std::pow(15.0 / 16, n)));
  }
}

TEST_CASE("DCTCP reduces by half of alpha, and by half at a loss") {
  Dctcp dctcp;
  Instant now = round_trips(dctcp, kControllerStart, kRtt, 3);
  const double alpha = dctcp.alpha();
  REQUIRE(alpha < 0.9);
  const double before = window_of(dctcp, now);
  now = round_trip(dctcp, now, kRtt, true);
  // The first of these acks ends an observation, which may change alpha before the reduction.
  const double low = before * (1 - (alpha + (1 - alpha) / 16) / 2);
  const double high = before * (1 - alpha * 15 / 16 / 2);
  CHECK(window_of(dctcp, now) >= Approx(low));
  CHECK(window_of(dctcp, now) <= Approx(high));
  const double left = window_of(dctcp, now);
  lose(dctcp, now + kRtt, kRtt, 1);
  CHECK(window_of(dctcp, now) == left / 2);
}
