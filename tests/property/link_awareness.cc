// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// What a receiver learns from ordinary traffic about links whose properties are known: rate, loss
// and round trip.
#include <cmath>

#include "tests/property/awareness_lab.h"
#include "tests/support/catch.h"

using namespace gradplane;
using awareness::RateEstimate;
using testing::AwarenessLab;
using testing::LabReceiver;
using testing::LabTraffic;

namespace {

constexpr int kDraws = 40;

struct Drawn {
  lab::LinkSettings link;
  LabReceiver receiver;
  LabTraffic traffic;
};

/// Draws links like those in NetStorm's network, with delays and losses that it did not have.
Drawn draw(std::uint64_t seed) {
  lab::Rng random(seed);
  const auto below = [&random](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  Drawn d;
  d.link.rate_bits_per_second = 20'000'000 + below(135'000'001);
  d.link.delay = Duration::us(500 + below(150'000));
  d.link.loss.random = static_cast<double>(below(3)) / 100;
  if (below(2) == 0) d.link.reorder = {.share = 0.01, .extra_delay = Duration::us(below(3'000))};
  d.receiver.poll_every = below(3) == 0 ? testing::kLabStep : Duration::us(50 + below(151));
  if (below(3) == 0) d.receiver.stall = Duration::ms(1 + below(10));
  d.traffic.blocks = static_cast<std::uint32_t>(400 + below(800));
  d.traffic.clock_offset_us = below(4'000'000'000);
  d.traffic.clock_drift_ppm = below(101) - 50;
  return d;
}

void show(std::uint64_t seed, const Drawn& d, const RateEstimate& e) {
  INFO("seed " << seed << ": " << d.link.rate_bits_per_second << " bit/s, "
               << d.link.delay.count_ns() / 1000 << " us, poll every "
               << d.receiver.poll_every.count_ns() / 1000 << " us; estimate " << e.bits_per_second
               << (e.is_lower_bound ? " at least" : "") << ", confidence " << e.confidence);
  CHECK_FALSE(e.is_lower_bound);
  CHECK(static_cast<double>(e.bits_per_second) ==
        Approx(static_cast<double>(d.link.rate_bits_per_second)).epsilon(0.1));
  CHECK(e.confidence > 0.4);
}

}  // namespace

TEST_CASE("after ten rounds a link's rate, loss and round trip are known") {
  for (std::uint64_t seed = 1; seed <= kDraws; ++seed) {
    const Drawn d = draw(seed);
    AwarenessLab lab(d.link, d.receiver, seed);
    lab.add(d.traffic);
    lab.run();
    show(seed, d, lab.rate(0));
    const auto loss = lab.estimate(0).loss(lab.now());
    const double sent = 10.0 * d.traffic.blocks;
    CHECK(std::abs(loss.share - lab.lost()) <= 0.002 + 2 * std::sqrt(lab.lost() / sent));
    CHECK(loss.confidence > 0.4);
    const auto rtt = lab.estimate(0).round_trip(lab.now());
    CHECK(rtt.rtt.to_seconds() == Approx(2 * d.link.delay.to_seconds()).epsilon(0.1));
    CHECK(rtt.confidence > 0.9);
  }
}

TEST_CASE("two jobs of one sender, at the same time, do not hide the rate") {
  for (std::uint64_t seed = 1; seed <= kDraws; ++seed) {
    const Drawn d = draw(seed);
    AwarenessLab lab(d.link, d.receiver, seed);
    lab.add(d.traffic);
    lab.add(d.traffic, 0);
    lab.run();
    show(seed, d, lab.rate(0));
  }
}

TEST_CASE("two senders that share a link each learn its rate") {
  for (std::uint64_t seed = 1; seed <= kDraws; ++seed) {
    const Drawn d = draw(seed);
    AwarenessLab lab(d.link, d.receiver, seed);
    LabTraffic other = d.traffic;
    other.clock_offset_us += 77'777;
    other.pause_max = Duration::ms(300);
    lab.add(d.traffic);
    lab.add(other);
    lab.run();
    show(seed, d, lab.rate(0));
    show(seed, d, lab.rate(1));
  }
}

TEST_CASE("pacing below the link gives a lower bound, and says so") {
  for (std::uint64_t seed = 1; seed <= kDraws; ++seed) {
    Drawn d = draw(seed);
    d.link.loss = {};
    d.traffic.paced_bits_per_second =
        static_cast<std::uint64_t>(d.link.rate_bits_per_second) * (30 + seed % 60) / 100;
    AwarenessLab lab(d.link, d.receiver, seed);
    lab.add(d.traffic);
    lab.run();
    const RateEstimate e = lab.rate(0);
    INFO("seed " << seed << ": " << d.link.rate_bits_per_second << " bit/s, paced at "
                 << d.traffic.paced_bits_per_second << ": " << e.bits_per_second);
    CHECK(e.is_lower_bound);
    CHECK(e.bits_per_second <= static_cast<std::uint64_t>(d.link.rate_bits_per_second));
    CHECK(static_cast<double>(e.bits_per_second) >=
          0.85 * static_cast<double>(d.traffic.paced_bits_per_second));
  }
}

TEST_CASE("soundings find what pacing hides, with at most 2 % of the blocks") {
  for (std::uint64_t seed = 1; seed <= kDraws; ++seed) {
    Drawn d = draw(seed);
    d.traffic.blocks = 2'500;
    d.traffic.rounds = 15;  // soundings are seconds apart
    d.traffic.soundings = true;
    d.traffic.paced_bits_per_second =
        static_cast<std::uint64_t>(d.link.rate_bits_per_second) * (30 + seed % 50) / 100;
    AwarenessLab lab(d.link, d.receiver, seed);
    lab.add(d.traffic);
    lab.run();
    show(seed, d, lab.rate(0));
    CHECK(lab.soundings(0).sounding_packets() * 50 <= lab.soundings(0).packets());
  }
}

TEST_CASE("a link that changes is followed within ten rounds") {
  for (std::uint64_t seed = 1; seed <= kDraws; ++seed) {
    Drawn d = draw(seed);
    AwarenessLab lab(d.link, d.receiver, seed);
    lab.add(d.traffic);
    lab.run();
    d.link.rate_bits_per_second = draw(seed + 1'000).link.rate_bits_per_second;
    lab.set(d.link);
    lab.again(10);
    show(seed, d, lab.rate(0));
  }
}

TEST_CASE("alarms of senders that share a link come to an end") {
  // Soundings of several senders stretch each other. Their trains then look unusual, which raises
  // an alarm, which asks for more soundings.
  constexpr std::uint64_t kShared = 12;
  constexpr double kRare = 0.2;  // even a false alarm must end
  for (std::uint64_t seed = 1; seed <= kShared; ++seed) {
    Drawn d = draw(seed);
    d.link.loss = {};
    AwarenessLab lab(d.link, d.receiver, seed);
    d.traffic.blocks = 400;
    d.traffic.soundings = true;
    d.traffic.paced_bits_per_second = static_cast<std::uint64_t>(d.link.rate_bits_per_second) / 8;
    for (int n = 0; n < 4; ++n) {
      d.traffic.clock_offset_us += 77'777;
      lab.add(d.traffic);
    }
    // The share of the time, over so many rounds, in which the receiver is in alarm.
    const auto alarm_in = [&lab](std::uint32_t rounds) {
      const Duration before = lab.alarm_time();
      const Instant from = lab.now();
      lab.again(rounds);
      return (lab.alarm_time() - before).to_seconds() / (lab.now() - from).to_seconds();
    };
    (void)alarm_in(20);
    CAPTURE(seed);
    CHECK(alarm_in(20) < kRare);
    d.link.rate_bits_per_second = d.link.rate_bits_per_second * 3 / 2;
    lab.set(d.link);
    (void)alarm_in(20);
    CHECK(alarm_in(20) < kRare);
  }
}
