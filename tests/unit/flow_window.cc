// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/hop/flow.h"
#include "tests/support/catch.h"

using namespace gradplane;
using hop::Flow;

namespace {

constexpr Instant kStart = Instant::from_ns(1'000'000'000);
constexpr std::size_t kBytes = 1500;

Flow unpaced() {
  return Flow({.rate_bits_per_second = 0, .block_wire_bytes = kBytes});
}

/// Passes round trips of `rtt` with a full window. Returns the time after them.
Instant run(Flow& flow, Instant now, Duration rtt, int round_trips) {
  for (int n = 0; n < round_trips; ++n) {
    while (flow.may_send(now)) flow.on_sent(now, kBytes, false);
    now = now + rtt;
    flow.on_rtt(now, rtt);
    flow.on_acked(now, flow.in_flight());
  }
  return now;
}

}  // namespace

TEST_CASE("a window bounds what is in flight") {
  Flow flow = unpaced();
  std::uint32_t sent = 0;
  while (flow.may_send(kStart)) {
    flow.on_sent(kStart, kBytes, false);
    REQUIRE(++sent <= 10'000);
  }
  CHECK(sent == flow.window());
  CHECK(flow.next_send() == Instant::never());
  flow.on_acked(kStart, 1);
  CHECK(flow.may_send(kStart));
  CHECK(flow.next_send() <= kStart);
}

TEST_CASE("a window doubles each round trip at first, up to its limit") {
  Flow flow = unpaced();
  const std::uint32_t first = flow.window();
  Instant now = run(flow, kStart, Duration::ms(1), 1);
  CHECK(flow.window() == 2 * first);
  run(flow, now, Duration::ms(1), 30);
  CHECK(flow.window() == 4096);
}

TEST_CASE("a window that nobody fills does not grow") {
  Flow flow = unpaced();
  const std::uint32_t first = flow.window();
  Instant now = kStart;
  for (int n = 0; n < 1000; ++n) {
    flow.on_sent(now, kBytes, false);
    now = now + Duration::ms(1);
    flow.on_rtt(now, Duration::ms(1));
    flow.on_acked(now, 1);
  }
  CHECK(flow.window() == first);
}

TEST_CASE("a standing queue shrinks the window, at most by half and to two blocks") {
  Flow flow = unpaced();
  Instant now = run(flow, kStart, Duration::ms(1), 8);
  const std::uint32_t full = flow.window();
  // One sample does not move the smoothed round trip over its target.
  flow.on_rtt(now, Duration::ms(8));
  CHECK(flow.window() == full);
  now = run(flow, now, Duration::ms(50), 1);
  CHECK(flow.window() < full);
  CHECK(flow.window() >= full / 2);
  run(flow, now, Duration::ms(400), 40);
  CHECK(flow.window() <= 4);
  CHECK(flow.window() >= 2);
}

TEST_CASE("a queue counts that is on the way there, and none on the way back") {
  const std::uint32_t clocks_differ_us = 0xffff'ff00;  // the difference wraps around
  for (const bool is_there : {true, false}) {
    Flow flow = unpaced();
    Instant now = kStart;
    const auto round_trip = [&](Duration queue) {
      while (flow.may_send(now)) flow.on_sent(now, kBytes, false);
      now = now + Duration::ms(10) + queue;
      const Duration there = Duration::ms(5) + (is_there ? queue : Duration());
      const auto there_us = static_cast<std::uint32_t>(there.count_ns() / 1000);
      flow.on_forward_delay(now, clocks_differ_us + there_us);
      flow.on_rtt(now, Duration::ms(10) + queue);
      flow.on_acked(now, flow.in_flight());
    };
    for (int n = 0; n < 3; ++n) round_trip(Duration());
    const std::uint32_t before = flow.window();
    for (int n = 0; n < 20; ++n) round_trip(Duration::ms(30));
    CAPTURE(is_there, before, flow.window());
    CHECK((flow.window() < before) == is_there);
  }
}

TEST_CASE("an answer that came long ago overtakes nothing") {
  Flow flow = unpaced();
  const Instant now = run(flow, kStart, Duration::ms(1), 1);
  flow.note_echo(now, 10'000);
  CHECK(flow.is_overtaken(now, 1000));
  CHECK_FALSE(flow.is_overtaken(now, 9000));    // the peer may hold an ack back
  CHECK_FALSE(flow.is_overtaken(now, 11'000));  // sent after the echo
  CHECK(flow.is_overtaken(now + Duration::ms(999), 1000));
  CHECK_FALSE(flow.is_overtaken(now + Duration::seconds(2000), 2'000'000'000 + 10'000));
  CHECK_FALSE(flow.is_overtaken(now + Duration::seconds(2), 1000));
}

TEST_CASE("a clock that drifts is no queue") {
  Flow flow = unpaced();
  Instant now = run(flow, kStart, Duration::ms(10), 3);
  const std::uint32_t before = flow.window();
  // 500 parts in a million, the largest slew rate of time daemons.
  for (int n = 0; n < 2000; ++n) {
    flow.on_forward_delay(now, static_cast<std::uint32_t>(5000 + 5 * n));
    now = run(flow, now, Duration::ms(10), 1);
  }
  CHECK(flow.window() > before);
}

TEST_CASE("a clock that somebody sets is no queue") {
  Flow flow = unpaced();
  Instant now = run(flow, kStart, Duration::ms(1), 3);
  flow.on_forward_delay(now, 1000);
  const std::uint32_t before = flow.window();
  for (int n = 0; n < 20; ++n) {
    flow.on_forward_delay(now, n % 2 == 0 ? 90'000'000 : 1000);
    now = run(flow, now, Duration::ms(1), 1);
    CHECK(flow.window() > before);
  }
}

TEST_CASE("a window grows as fast in time on a long path as on a short one") {
  const auto growth_in_a_second = [](Duration rtt) {
    Flow flow = unpaced();
    Instant now = run(flow, kStart, rtt, 5);
    flow.on_silence(now);  // ends the fast growth
    now = now + rtt * 2;
    const std::uint32_t before = flow.window();
    run(flow, now, rtt, static_cast<int>(1 / rtt.to_seconds()));
    return flow.window() - before;
  };
  // One block in 4 ms, so 250 in a second.
  CHECK(growth_in_a_second(Duration::ms(4)) >= 245);
  CHECK(growth_in_a_second(Duration::ms(40)) >= 240);
  CHECK(growth_in_a_second(Duration::ms(40)) <= 260);
  CHECK(growth_in_a_second(Duration::ms(100)) >= 220);
}

TEST_CASE("random loss leaves the window alone, heavy loss halves it once per round trip") {
  Flow flow = unpaced();
  Instant now = run(flow, kStart, Duration::ms(1), 8);
  while (flow.may_send(now)) flow.on_sent(now, kBytes, false);
  const std::uint32_t full = flow.window();
  flow.on_acked(now, full * 9 / 10);
  flow.on_lost(now, full / 20, now);
  CHECK(flow.window() >= full);
  while (flow.may_send(now)) flow.on_sent(now, kBytes, false);
  const std::uint32_t before = flow.window();
  flow.on_lost(now, flow.in_flight() / 2, now);
  CHECK(flow.window() == before / 2);
  flow.on_lost(now, flow.in_flight() / 2, now);
  CHECK(flow.window() == before / 2);
  now = now + Duration::ms(2);
  flow.on_silence(now);
  CHECK(flow.window() == before / 4);
}

TEST_CASE("a probe waits for several round trips, within bounds") {
  Flow flow = unpaced();
  CHECK(flow.probe_timeout() == Duration::ms(20));
  Instant now = run(flow, kStart, Duration::us(20), 50);
  CHECK(flow.probe_timeout() == Duration::ms(5));
  run(flow, now, Duration::seconds(20), 50);
  CHECK(flow.probe_timeout() == Duration::ms(500));
}

TEST_CASE("reordering within a quarter of a round trip is no loss") {
  Flow flow = unpaced();
  CHECK(flow.reorder_window() == Duration::us(200));
  run(flow, kStart, Duration::ms(8), 1);
  CHECK(flow.reorder_window() == Duration::ms(2));
}

TEST_CASE("the smallest round trip is forgotten when the path grows longer") {
  Flow flow = unpaced();
  Instant now = run(flow, kStart, Duration::ms(1), 10);
  CHECK(flow.min_rtt() == Duration::ms(1));
  now = run(flow, now, Duration::ms(3), 10'000);  // 30 s
  CHECK(flow.min_rtt() == Duration::ms(3));
}

TEST_CASE("a windowed minimum is that of the last one to two lifetimes") {
  WindowedMin least(Duration::seconds(10));
  CHECK(least.value() == Duration());
  const auto add = [&](int seconds, int ms) {
    least.add(Duration::ms(ms), kStart + Duration::seconds(seconds));
    return least.value();
  };
  CHECK(add(0, 5) == Duration::ms(5));
  CHECK(add(1, 3) == Duration::ms(3));
  CHECK(add(9, 4) == Duration::ms(3));
  CHECK(add(10, 6) == Duration::ms(3));  // the least of the first ten seconds
  CHECK(add(19, 7) == Duration::ms(3));
  CHECK(add(20, 8) == Duration::ms(6));  // the least of the second ten seconds
  CHECK(add(21, 7) == Duration::ms(6));
  CHECK(add(30, 9) == Duration::ms(7));
  CHECK(add(31, 2) == Duration::ms(2));
}

TEST_CASE("forgotten blocks leave the flight without a word about the network") {
  Flow flow = unpaced();
  for (int n = 0; n < 10; ++n) flow.on_sent(kStart, kBytes, false);
  const std::uint32_t window = flow.window();
  flow.on_forgotten(10);
  CHECK(flow.in_flight() == 0);
  CHECK(flow.window() == window);
}

TEST_CASE("a paced window follows the path, whatever it costs in delay; loss takes it below") {
  // 100 Mbit/s carries 83 blocks of 1500 bytes in 10 ms.
  Flow flow({.rate_bits_per_second = 100'000'000, .block_wire_bytes = kBytes});
  CHECK(flow.window() == 83);
  Instant now = kStart;
  const auto samples = [&](Duration rtt) {
    for (int n = 0; n < 60; ++n) flow.on_rtt(now = now + rtt, rtt);
  };
  samples(Duration::ms(1));
  CHECK(flow.window() >= 91);
  samples(Duration::ms(400));  // the smallest round trip stays 1 ms for seconds
  CHECK(flow.window() >= 3400);
  for (int n = 0; n < 20; ++n) {
    now = now + Duration::seconds(1);
    flow.on_silence(now);
  }
  CHECK(flow.window() == 2);
  flow.on_rtt(now + Duration::ms(900), Duration::ms(400));
  CHECK(flow.window() == 2);
  flow.on_rtt(now + Duration::ms(1100), Duration::ms(400));
  CHECK(flow.window() >= 3400);
}

TEST_CASE("a paced window covers a long round trip from its first sample on") {
  // 100 Mbit/s carries 416 blocks of 1500 bytes in 40 ms and 10 ms.
  Flow flow({.rate_bits_per_second = 100'000'000, .block_wire_bytes = kBytes});
  flow.on_sent(kStart, kBytes, false);
  flow.on_rtt(kStart + Duration::ms(40), Duration::ms(40));
  CHECK(flow.window() == 416);
}

TEST_CASE("a flow counts what it sent, sent again and missed") {
  Flow flow = unpaced();
  flow.on_sent(kStart, kBytes, false);
  flow.on_sent(kStart, kBytes, true);
  flow.on_lost(kStart, 1, kStart);
  CHECK(flow.counts().sent == 2);
  CHECK(flow.counts().retransmitted == 1);
  CHECK(flow.counts().suspected_lost == 1);
}

TEST_CASE("one absurd round trip does not stop a flow for its length") {
  // An echo may be half an hour old: its process was stopped, or the peer lies.
  Flow flow = unpaced();
  flow.on_sent(kStart, kBytes, false);
  flow.on_rtt(kStart, Duration::seconds(1800));
  flow.on_acked(kStart, 1);
  CHECK(flow.reorder_window() <= Duration::seconds(1));
  const Instant now = run(flow, kStart + Duration::seconds(2), Duration::ms(1), 5000);
  CHECK(flow.window() > 100);
  CHECK(flow.reorder_window() == Duration::us(250));
  CHECK(now < kStart + Duration::seconds(8));
}

TEST_CASE("a probe goes out although the window is full of what was lost") {
  Flow flow = unpaced();
  while (flow.may_send(kStart)) flow.on_sent(kStart, kBytes, false);
  flow.on_silence(kStart);
  flow.on_forgotten(1);
  CHECK_FALSE(flow.may_send(kStart));
  flow.on_probe();
  CHECK(flow.may_send(kStart));
  CHECK(flow.next_send() <= kStart);
  flow.on_sent(kStart, kBytes, true);
  CHECK_FALSE(flow.may_send(kStart));
}

TEST_CASE("only an echo later than all before measures a round trip, across the clock's wrap") {
  Flow flow = unpaced();
  flow.note_echo(kStart, 1000);
  CHECK(flow.is_newer_echo(1001));
  CHECK_FALSE(flow.is_newer_echo(1000));
  CHECK_FALSE(flow.is_newer_echo(999));
  flow.note_echo(kStart, 0xffff'fff0);
  CHECK(flow.is_newer_echo(5));
  CHECK_FALSE(flow.is_newer_echo(0xffff'ffe0));
}

TEST_CASE("a flow is sounded again only when what came after the last sounding is answered") {
  Flow flow = unpaced();
  const Duration rtt = Duration::ms(100);
  const Instant begin = run(flow, kStart, rtt, 1);
  REQUIRE(flow.is_worth_sounding(begin));
  flow.sounding().left = flow.sounding().blocks = awareness::kSoundingBlocks;
  flow.note_sounding(begin);
  flow.note_sounding(begin + Duration::ms(1));
  flow.sounding().left = 0;
  const Instant later = begin + rtt;
  CHECK_FALSE(flow.is_worth_sounding(later));
  flow.note_answered(later, begin);
  CHECK_FALSE(flow.is_worth_sounding(later));
  flow.note_answered(later, begin + Duration::ms(2));
  CHECK(flow.is_worth_sounding(later));
}

TEST_CASE("a controller hears nothing of what waits behind a sounding") {
  Flow flow = unpaced();
  const Duration rtt = Duration::ms(100);
  const Instant begin = run(flow, kStart, rtt, 1);
  flow.sounding().left = flow.sounding().blocks = awareness::kSoundingBlocks;
  flow.note_sounding(begin);
  flow.sounding().left = 0;
  const Instant behind = begin + Duration::ms(1);
  CHECK_FALSE(flow.is_of_sounding(begin - Duration::ms(1)));
  CHECK(flow.is_of_sounding(behind));
  const std::uint32_t window = flow.window();
  flow.on_silence(behind + rtt);  // the block waits behind the sounding
  CHECK(flow.window() == window);
  const Instant answered = begin + rtt * 2;
  flow.note_answered(answered, behind);
  CHECK(flow.is_of_sounding(answered - Duration::ms(1)));
  CHECK_FALSE(flow.is_of_sounding(answered + Duration::ms(1)));
  flow.on_silence(answered + rtt);
  CHECK(flow.window() < window);
}
