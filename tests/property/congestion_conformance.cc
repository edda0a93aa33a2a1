// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Properties that every congestion controller must have in all situations.
#include <cmath>
#include <string>
#include <vector>

#include "tests/sim/dice.h"
#include "tests/support/catch.h"
#include "tests/support/congestion.h"

using namespace gradplane;
using namespace gradplane::testing;
using congestion::Controller;
using congestion::Decision;

namespace {

constexpr Duration kRtt = Duration::ms(1);
constexpr int kSeeds = 40;
constexpr int kEvents = 1500;

std::vector<ControllerKind> all_kinds() {
  std::vector<ControllerKind> kinds;
  for (std::size_t k = 0; k < kControllerNames.size(); ++k) {
    kinds.push_back(static_cast<ControllerKind>(k));
  }
  return kinds;
}

std::string name_of(ControllerKind kind) {
  return std::string(kControllerNames[static_cast<std::size_t>(kind)]);
}

/// A sender with random events from a seed: time that stops or jumps, round trips from a
/// microsecond to seconds, losses, marks, and silence.
class AnySender {
 public:
  AnySender(Controller& controller, std::uint64_t seed) : controller_(controller), dice_(seed) {}

  void step() {
    now_ = now_ + pause();
    switch (dice_.below(8)) {
      case 0:
      case 1:
      case 2:
        controller_.on_sent(now_, kBlockWireBytes, in_flight_);
        in_flight_ += in_flight_ < 5000 ? 1 : 0;
        break;
      case 3:
      case 4:
      case 5:
        ack();
        break;
      case 6:
        lose_some();
        break;
      default:
        if (controller_.next_tick() <= now_ || dice_.coin()) controller_.on_tick(now_);
    }
  }
  Instant now() const { return now_; }
  std::uint32_t in_flight() const { return in_flight_; }
  Duration smoothed() const { return smoothed_; }
  Duration least() const { return least_; }

 private:
  Duration pause() {
    switch (dice_.below(50)) {
      case 0:
        return Duration::seconds(static_cast<std::int64_t>(dice_.below(100)));
      case 1:
      case 2:
        return Duration::ms(static_cast<std::int64_t>(dice_.below(500)));
      default:
        return Duration::us(static_cast<std::int64_t>(dice_.below(300)));
    }
  }

  void ack() {
    congestion::AckEvent event{.now = now_, .in_flight_blocks = in_flight_, .rtt = {}};
    event.acked_blocks = static_cast<std::uint32_t>(dice_.below(in_flight_ + 1));
    event.marked_blocks = dice_.below(5) == 0 ? 1 + event.acked_blocks / 2 : 0;
    event.app_limited = dice_.coin();
    if (dice_.coin()) {
      event.rtt =
          Duration::us(static_cast<std::int64_t>(1 + dice_.below(dice_.coin() ? 500 : 1'000'000)));
      smoothed_ = smoothed_ == Duration() ? event.rtt : (smoothed_ * 7 + event.rtt) / 8;
      least_ = least_ == Duration() ? event.rtt : std::min(least_, event.rtt);
    }
    event.smoothed_rtt = smoothed_;
    event.min_rtt = least_;
    controller_.on_ack(event);
    in_flight_ -= event.acked_blocks;
  }

  void lose_some() {
    if (dice_.below(4) == 0) {
      fall_silent(controller_, now_, smoothed_);
      return;
    }
    const auto lost = static_cast<std::uint32_t>(dice_.below(in_flight_ + 1));
    lose(controller_, now_, smoothed_, lost);
    in_flight_ -= lost;
  }

  Controller& controller_;
  sim::Dice dice_;
  Instant now_ = kControllerStart;
  std::uint32_t in_flight_ = 0;
  Duration smoothed_;
  Duration least_;
};

bool same(const Decision& a, const Decision& b) {
  return a.window_blocks == b.window_blocks && a.pacing_bits_per_second == b.pacing_bits_per_second;
}

/// Whether `a` allows at most as much as `b`.
bool no_more(const Decision& a, const Decision& b) {
  const bool slower =
      b.pacing_bits_per_second == 0 ||
      (a.pacing_bits_per_second > 0 && a.pacing_bits_per_second <= b.pacing_bits_per_second);
  return a.window_blocks <= b.window_blocks && slower;
}

void require_sane(const Decision& d) {
  REQUIRE(std::isfinite(d.window_blocks));
  REQUIRE(d.window_blocks >= congestion::kMinWindow);
  REQUIRE(d.window_blocks <= congestion::kMaxWindow);
  if (d.window_blocks < 1) REQUIRE(d.pacing_bits_per_second > 0);
}

}  // namespace

TEST_CASE("a window stays within its bounds whatever happens") {
  for (const ControllerKind kind : all_kinds()) {
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      INFO(name_of(kind) << " seed " << seed);
      const auto controller = controller_of(kind, seed % 3 == 0 ? 0 : kLinkBitsPerSecond);
      AnySender sender(*controller, seed);
      sim::Dice gains(seed);
      for (int n = 0; n < kEvents; ++n) {
        if (seed % 2 == 0) controller->set_gain(0.01 + static_cast<double>(gains.below(800)) / 100);
        sender.step();
        require_sane(controller->decide(sender.now()));
      }
    }
  }
}

TEST_CASE("a window stops at its bound on a path without end") {
  for (const ControllerKind kind : all_kinds()) {
    INFO(name_of(kind));
    const auto controller = controller_of(kind, 0);
    controller->set_gain(8);
    Instant now = kControllerStart;
    for (int n = 0; n < 600; ++n) {
      now = round_trip(*controller, now, kRtt);
      require_sane(controller->decide(now));
    }
  }
}

TEST_CASE("the same events make the same decisions") {
  for (const ControllerKind kind : all_kinds()) {
    INFO(name_of(kind));
    const auto a = controller_of(kind);
    const auto b = controller_of(kind);
    AnySender first(*a, 7);
    AnySender second(*b, 7);
    for (int n = 0; n < kEvents; ++n) {
      first.step();
      second.step();
      REQUIRE(same(a->decide(first.now()), b->decide(second.now())));
    }
  }
}

TEST_CASE("a gain of 1 is the controller as it is") {
  for (const ControllerKind kind : all_kinds()) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      INFO(name_of(kind) << " seed " << seed);
      const auto plain = controller_of(kind);
      const auto decorated = congestion::make_controller(
          {.controller = kind,
           .rate_bits_per_second = 100'000'000,
           .mltcp = MltcpFunction{.slope = 0, .intercept = 1}},
          {.link_bits_per_second = kLinkBitsPerSecond, .block_wire_bytes = kBlockWireBytes});
      AnySender first(*plain, seed);
      AnySender second(*decorated, seed);
      for (int n = 0; n < kEvents; ++n) {
        first.step();
        decorated->on_phase({.ratio = static_cast<double>(n % 11) / 10});
        second.step();
        REQUIRE(same(plain->decide(first.now()), decorated->decide(second.now())));
      }
      CHECK(decorated->name() == plain->name());
    }
  }
}

TEST_CASE("a larger gain grows no slower, and reduces as much") {
  for (const ControllerKind kind : all_kinds()) {
    INFO(name_of(kind));
    const auto slow = controller_of(kind, 0);
    const auto fast = controller_of(kind, 0);
    round_trips(*slow, kControllerStart, kRtt, 4);
    Instant now = round_trips(*fast, kControllerStart, kRtt, 4);
    slow->set_gain(0.5);
    fast->set_gain(2);
    lose(*slow, now, kRtt, 100);
    lose(*fast, now, kRtt, 100);
    REQUIRE(same(slow->decide(now), fast->decide(now)));
    for (int n = 0; n < 50; ++n) {
      round_trip(*slow, now, kRtt);
      now = round_trip(*fast, now, kRtt);
      REQUIRE(slow->decide(now).window_blocks <= fast->decide(now).window_blocks);
    }
  }
}

TEST_CASE("more loss never leaves a larger window") {
  for (const ControllerKind kind : all_kinds()) {
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      INFO(name_of(kind) << " seed " << seed);
      // The controllers have the same history, and then a different loss.
      const auto after = [&](std::uint32_t lost, bool silent) {
        const auto controller = controller_of(kind);
        AnySender sender(*controller, seed);
        for (int n = 0; n < 300; ++n) sender.step();
        const Instant now = sender.now() + Duration::seconds(3);
        controller->on_tick(now);
        if (lost > 0) lose(*controller, now, sender.smoothed(), lost);
        if (silent) fall_silent(*controller, now, sender.smoothed());
        return controller->decide(now);
      };
      const Decision none = after(0, false);
      const Decision one = after(1, false);
      const Decision many = after(1000, false);
      REQUIRE(no_more(one, none));
      REQUIRE(no_more(many, one));
      REQUIRE(no_more(after(0, true), none));
    }
  }
}

TEST_CASE("a mark never leaves a larger window") {
  for (const ControllerKind kind : all_kinds()) {
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      INFO(name_of(kind) << " seed " << seed);
      const auto after = [&](bool marked) {
        const auto controller = controller_of(kind);
        AnySender sender(*controller, seed);
        for (int n = 0; n < 300; ++n) sender.step();
        const Instant now = sender.now() + Duration::seconds(3);
        controller->on_ack({.now = now,
                            .acked_blocks = std::min(sender.in_flight(), 1U),
                            .in_flight_blocks = sender.in_flight(),
                            .marked_blocks = marked ? 1U : 0U,
                            .rtt = {},
                            .smoothed_rtt = sender.smoothed(),
                            .min_rtt = sender.least()});
        return controller->decide(now);
      };
      REQUIRE(no_more(after(true), after(false)));
    }
  }
}

TEST_CASE("one reaction in a round trip") {
  for (const ControllerKind kind : all_kinds()) {
    INFO(name_of(kind));
    const auto controller = controller_of(kind, 0);
    Instant now = round_trips(*controller, kControllerStart, kRtt, 5);
    const std::uint64_t before = controller->stats().reductions;
    lose(*controller, now, kRtt, 100);
    const Decision once = controller->decide(now);
    const std::uint64_t reductions = controller->stats().reductions;
    CHECK(reductions <= before + 1);
    for (int n = 1; n < 10; ++n) {
      const Instant soon = now + kRtt * n / 10;
      lose(*controller, soon, kRtt, 100);
      controller->on_ack({.now = soon,
                          .acked_blocks = 0,
                          .in_flight_blocks = 1,
                          .marked_blocks = 1,
                          .rtt = {},
                          .smoothed_rtt = kRtt,
                          .min_rtt = kRtt});
      fall_silent(*controller, soon, kRtt);
      CHECK(controller->stats().reductions <= before + 1);
      if (reductions > before) CHECK(controller->decide(soon).window_blocks >= once.window_blocks);
    }
    lose(*controller, now + kRtt * 3, kRtt, 2, now - Duration::us(1));
    if (kind != ControllerKind::kDelay) CHECK(controller->stats().reductions <= before + 1);
    now = now + kRtt * 3 + Duration::us(1);
    lose(*controller, now, kRtt, 1000);
    if (reductions > before) CHECK(controller->stats().reductions == reductions + 1);
  }
}

TEST_CASE("a rest makes no window larger, and it grows again after it") {
  for (const ControllerKind kind : all_kinds()) {
    INFO(name_of(kind));
    const auto controller = controller_of(kind, 0);
    Instant now = round_trips(*controller, kControllerStart, kRtt, 8);
    const double before = window_of(*controller, now);
    now = now + Duration::seconds(60);
    controller->on_sent(now, kBlockWireBytes, 0);
    const double after = window_of(*controller, now);
    CHECK(after <= before);
    const bool starts_anew = kind == ControllerKind::kReno || kind == ControllerKind::kCubic ||
                             kind == ControllerKind::kDctcp;
    if (starts_anew) {
      CHECK(before > 1000);
      CHECK(after == 10);
    }
    now = round_trips(*controller, now, kRtt, 20);
    CHECK(window_of(*controller, now) >= after);
    if (starts_anew) CHECK(window_of(*controller, now) > 1000);
  }
}

TEST_CASE("a window that nobody fills does not grow") {
  for (const ControllerKind kind : all_kinds()) {
    INFO(name_of(kind));
    const auto controller = controller_of(kind, 0);
    Instant now = round_trips(*controller, kControllerStart, kRtt, 2);
    const double before = window_of(*controller, now);
    for (int n = 0; n < 500; ++n) {
      controller->on_sent(now, kBlockWireBytes, 0);
      now = now + kRtt;
      controller->on_ack({.now = now,
                          .acked_blocks = 1,
                          .in_flight_blocks = 1,
                          .app_limited = true,
                          .rtt = kRtt,
                          .smoothed_rtt = kRtt,
                          .min_rtt = kRtt});
    }
    CHECK(window_of(*controller, now) <= before);
  }
}

TEST_CASE("under synchronised congestion two flows share as their gains") {
  using enum ControllerKind;
  for (const ControllerKind kind : {kReno, kDctcp, kSwift}) {
    INFO(name_of(kind));
    const auto one = controller_of(kind, 0);
    const auto two = controller_of(kind, 0);
    two->set_gain(2);
    // 10 ms hold 600 blocks. Packets are marked from 650 blocks in flight on. Both senders share a
    // queue.
    constexpr double kPathBlocks = 600;
    constexpr double kMarkFrom = 650;
    constexpr Duration kBase = Duration::ms(10);
    Instant now = kControllerStart;
    double sum_one = 0;
    double sum_two = 0;
    for (int n = 0; n < 20'000; ++n) {
      const double total = window_of(*one, now) + window_of(*two, now);
      const double waits_s = std::max(0.0, total - kPathBlocks) / kPathBlocks * kBase.to_seconds();
      const Duration rtt = kBase + Duration::ns(static_cast<std::int64_t>(waits_s * 1e9));
      const bool marked = total > kMarkFrom;
      round_trip(*one, now, rtt, marked, kBase);
      now = round_trip(*two, now, rtt, marked, kBase);
      if (n < 5'000) continue;
      sum_one += window_of(*one, now);
      sum_two += window_of(*two, now);
    }
    CHECK(sum_two / sum_one == Approx(2).epsilon(0.05));
    CHECK((sum_one + sum_two) / 15'000 > 0.6 * kPathBlocks);
  }
}
