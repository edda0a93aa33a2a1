// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Properties of the grant scheduler over any network, with senders that follow the production
// rules.
#include <algorithm>
#include <vector>

#include "tests/sim/contestant.h"
#include "tests/sim/dice.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::sim::incast;
using Policy = grants::GrantScheduler::Policy;

namespace {

constexpr double kRounding = 1e-9;

Job job_of(std::uint32_t blocks) {
  Job job;
  job.blocks = blocks;
  return job;
}

/// Adds a silent job whose weight takes nearly all of the window, so that the others need grants.
void leave_window_to_grants(Scenario& s) {
  s.policy = Policy::kWeighted;
  Job idle = job_of(0);
  idle.iterations = 0;
  idle.weight = kMaxJobWeight;
  Sender sender;
  sender.job = static_cast<std::uint16_t>(s.jobs.size());
  s.jobs.push_back(idle);
  s.senders.push_back(sender);
}

/// One job with `senders` equal senders.
Scenario incast(std::size_t senders, std::uint32_t blocks) {
  Scenario s;
  s.senders.resize(senders);
  s.jobs = {job_of(blocks)};
  return s;
}

Scenario random_scenario(std::uint64_t seed) {
  sim::Dice dice(seed);
  Scenario s;
  s.seed = seed;
  const std::uint64_t rates[] = {100'000'000, 1'000'000'000, 10'000'000'000};
  s.link_bits_per_second = rates[dice.below(3)];
  s.block_wire_bytes = dice.coin() ? 1522 : 8946;
  s.last_wire_bytes = dice.coin() ? 200 : 0;
  s.delay = dice.between(Duration::us(5), Duration::ms(2));
  s.buffer_bytes = s.block_wire_bytes * (4 + dice.below(100));
  s.mark_bytes = dice.coin() ? s.buffer_bytes / 4 : 0;
  s.loss = dice.maybe(0.04);
  s.grant_loss = dice.maybe(0.2);
  s.tell_link = dice.below(4) != 0;
  s.tell_buffer = dice.coin();
  s.policy = static_cast<Policy>(dice.below(4));
  s.first_count = dice.coin() ? 0 : UINT32_MAX - static_cast<std::uint32_t>(dice.below(300));
  for (std::uint64_t j = 0; j <= dice.below(3); ++j) {
    Job job = job_of(1 + static_cast<std::uint32_t>(dice.below(200)));
    job.iterations = 1 + static_cast<std::uint32_t>(dice.below(3));
    job.start = Instant{} + dice.between({}, Duration::ms(3));
    job.compute = dice.between({}, Duration::ms(3));
    job.weight = 0.2 + static_cast<double>(dice.below(50)) / 10;
    s.jobs.push_back(job);
    for (std::uint64_t n = 0; n <= dice.below(24); ++n) {
      Sender sender;
      sender.job = static_cast<std::uint16_t>(j);
      if (dice.below(6) == 0) sender.uplink_bits_per_second = s.link_bits_per_second / 20;
      if (dice.below(6) == 0) sender.extra_delay = dice.between({}, Duration::ms(5));
      if (dice.below(4) == 0) sender.late = dice.between({}, Duration::ms(1));
      if (dice.below(8) == 0) {
        sender.dead_from = Instant{} + dice.between({}, Duration::ms(5));
        sender.dead_until = sender.dead_from + dice.between({}, Duration::ms(80));
      }
      s.senders.push_back(sender);
    }
  }
  if (dice.coin()) leave_window_to_grants(s);
  return s;
}

Duration last_end(const Outcome& outcome, std::size_t from) {
  const auto end = std::max_element(outcome.sender_ends.begin() + static_cast<std::ptrdiff_t>(from),
                                    outcome.sender_ends.end());
  return *end - Instant{};
}

}  // namespace

TEST_CASE("over any network everything arrives, and no grant exceeds the window") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    const Scenario scenario = random_scenario(seed);
    const Outcome outcome = run(scenario);
    REQUIRE(outcome.finished);
    REQUIRE(outcome.max_window_used <= 1 + kRounding);
    for (std::size_t i = 0; i < scenario.senders.size(); ++i) {
      const Job& job = scenario.jobs[scenario.senders[i].job];
      REQUIRE(outcome.came[i] == std::uint64_t{job.blocks} * job.iterations);
    }
    if (seed % 10 == 0) REQUIRE(run(scenario).trace == outcome.trace);
  }
}

TEST_CASE("senders keep their share while others are slow, dead or silent") {
  Scenario s = incast(8, 4000);
  const double fast_s = 7 * 4000 * 1522 * 8 / 1e9;
  // Share of the link for the seven others; no one gets a sender's unused share.
  double rest = 7.0 / 8;
  double others_s = 0;  // time of the link for the first sender
  SECTION("slow") {
    s.senders[0].uplink_bits_per_second = 50'000'000;
  }
  SECTION("dead after a while") {
    s.senders[0].dead_from = Instant::from_ns(100'000'000);
  }
  SECTION("silent from the beginning") {
    s.senders[0].dead_from = Instant::from_ns(200'000);
  }
  SECTION("dead for a while") {
    s.senders[0].dead_from = Instant::from_ns(100'000'000);
    s.senders[0].dead_until = Instant::from_ns(150'000'000);
    rest = 1;
    others_s = 4000 * 1522 * 8 / 1e9;  // it catches up with the others
  }
  SECTION("several slow ones") {
    s.senders.resize(12);
    std::rotate(s.senders.begin(), s.senders.begin() + 8, s.senders.end());
    for (int i = 0; i < 5; ++i) s.senders[i].uplink_bits_per_second = 50'000'000;
    rest = 7.0 / 12;
  }
  s.limit = Duration::seconds(1);
  const std::size_t slow = s.senders.size() - 7;
  const Outcome outcome = run(s);
  const double busy = others_s + fast_s / rest;
  CHECK(busy / last_end(outcome, slow).to_seconds() >= 0.96);
}

TEST_CASE("grants keep the link busy while others are slow, dead or silent") {
  Scenario s = incast(8, 4000);
  const double fast_s = 7 * 4000 * 1522 * 8 / 1e9;
  double rest = 1;      // share of the link for the seven others
  double others_s = 0;  // time of the link for the first sender
  SECTION("slow") {
    s.senders[0].uplink_bits_per_second = 50'000'000;
    rest = 0.95;
  }
  SECTION("dead after a while") {
    s.senders[0].dead_from = Instant::from_ns(100'000'000);
    others_s = 100e-3 / 8;
  }
  SECTION("silent from the beginning") {
    s.senders[0].dead_from = Instant::from_ns(200'000);
  }
  SECTION("dead for a while") {
    s.senders[0].dead_from = Instant::from_ns(100'000'000);
    s.senders[0].dead_until = Instant::from_ns(150'000'000);
    others_s = 4000 * 1522 * 8 / 1e9;  // it catches up with the others
  }
  SECTION("several slow ones") {
    s.senders.resize(12);
    std::rotate(s.senders.begin(), s.senders.begin() + 8, s.senders.end());
    for (int i = 0; i < 5; ++i) s.senders[i].uplink_bits_per_second = 50'000'000;
    rest = 0.75;
  }
  s.limit = Duration::seconds(1);
  const std::size_t slow = s.senders.size() - 7;
  leave_window_to_grants(s);
  const Outcome outcome = run(s);
  const auto end = *std::max_element(
      outcome.sender_ends.begin() + static_cast<std::ptrdiff_t>(slow), outcome.sender_ends.end());
  const double busy = others_s + fast_s / rest;
  CHECK(busy / (end - Instant{}).to_seconds() >= 0.98);
}

TEST_CASE("a far sender gets as much as the near ones, and the link is busy") {
  Scenario s = incast(4, 16'000);
  s.buffer_bytes = 256 << 10;
  // The delay fills its equal share of the blocks in flight.
  s.senders[0].extra_delay = Duration::us(800);
  const Outcome outcome = run(s);
  const auto [first, last] =
      std::minmax_element(outcome.sender_ends.begin(), outcome.sender_ends.end());
  CHECK((*last - Instant{}).to_seconds() / (*first - Instant{}).to_seconds() < 1.02);
  CHECK(bound(s).to_seconds() / last_end(outcome, 0).to_seconds() >= 0.98);
}

TEST_CASE("many sources share a window of a few blocks each: nobody is left behind") {
  constexpr std::size_t kSenders = 100;
  Scenario s = incast(kSenders, 300);
  s.buffer_bytes = 512 << 10;
  leave_window_to_grants(s);
  std::uint32_t widest = 0;
  bool looked = false;
  s.on_event = [&](grants::GrantScheduler& grants, Instant now) {
    if (now < Instant{} + Duration::ms(200) || now > Instant{} + Duration::ms(300)) return;
    looked = true;
    std::uint32_t min = UINT32_MAX;
    std::uint32_t max = 0;
    for (std::size_t i = 0; i < kSenders; ++i) {
      const std::uint32_t total = grants.view(grants::SourceIndex::from_index(i)).total_blocks;
      min = std::min(min, total);
      max = std::max(max, total);
    }
    widest = std::max(widest, max - min);
  };
  const Outcome outcome = run(s);
  REQUIRE(outcome.finished);
  REQUIRE(looked);
  CHECK(outcome.drops == 0);
  CHECK(widest <= 40);  // a batch, and the blocks with which each began
  CHECK(bound(s).to_seconds() / last_end(outcome, 0).to_seconds() >= 0.98);
}

TEST_CASE("1024 sources have a block each on their way, however small the buffer") {
  Scenario s = incast(1024, 30);
  s.buffer_bytes = 256 << 10;
  const Outcome outcome = run(s);
  REQUIRE(outcome.finished);
  for (const std::uint64_t came : outcome.came) REQUIRE(came == 30);
  CHECK(bound(s).to_seconds() / last_end(outcome, 0).to_seconds() >= 0.6);
}

TEST_CASE("lost grants cost nothing but a moment, lost data what is sent again") {
  Scenario s = incast(8, 2000);
  s.grant_loss = 0.2;
  Outcome outcome = run(s);
  CHECK(bound(s).to_seconds() / last_end(outcome, 0).to_seconds() >= 0.97);
  s.grant_loss = 0;
  s.loss = 0.03;
  outcome = run(s);
  CHECK(bound(s).to_seconds() / last_end(outcome, 0).to_seconds() >= 0.97 * 0.95);
  CHECK(outcome.sent_again <= outcome.losses + outcome.drops + 8);
}

TEST_CASE("a job whose senders ignore grants takes no more than its half from another") {
  Scenario s = incast(8, 4000);
  s.jobs.push_back(job_of(4000));
  for (std::size_t i = 4; i < 8; ++i) s.senders[i].job = 1;
  const Outcome fair = run(s);
  for (std::size_t i = 4; i < 8; ++i) {
    s.senders[i].ignores_grants = true;
    s.senders[i].uplink_bits_per_second = 150'000'000;
  }
  const Outcome outcome = run(s);
  const auto took = [](const Outcome& o) {
    return (o.iterations[0][0].end - o.iterations[0][0].start).to_seconds();
  };
  CHECK(took(outcome) <= took(fair) * 1.3);
}

TEST_CASE(
    "whatever limits the senders, everything arrives; grants lose nothing that fits the buffer") {
  for (const char* name : {"grants", "grants+delay", "grants+reno", "reno", "cubic", "dctcp",
                           "dcqcn", "swift", "bbr", "delay", "fixed", "reno+mltcp"}) {
    CAPTURE(name);
    Scenario s = incast(16, 200);
    s.mark_bytes = 20'000;
    REQUIRE(choose(name, s));
    // The credit of all senders at the start fits into this buffer, but not into 64 KiB.
    if (s.grants) s.buffer_bytes = 256 << 10;
    const Outcome outcome = run(s);
    REQUIRE(outcome.finished);
    for (const std::uint64_t came : outcome.came) REQUIRE(came == 200);
    CHECK(s.grants == (outcome.drops == 0));
  }
  Scenario s = incast(1, 1);
  CHECK_FALSE(choose("grants+", s));
  CHECK_FALSE(choose("vegas", s));
}

TEST_CASE("where the link before the receiver is half as fast, grants come down to it") {
  for (const std::size_t senders : {8, 32}) {
    for (const int delay_us : {200, 2000}) {
      for (const std::size_t jobs : {1, 2}) {
        CAPTURE(senders, delay_us, jobs);
        Scenario s = incast(senders, static_cast<std::uint32_t>(96'000 / senders));
        s.jobs.resize(jobs, s.jobs[0]);
        for (std::size_t i = 0; i < senders; ++i) {
          s.senders[i].job = static_cast<std::uint16_t>(i % jobs);
        }
        s.link_bits_per_second = 500'000'000;
        s.own_bits_per_second = 1'000'000'000;
        s.delay = Duration::us(delay_us);
        s.buffer_bytes = 16 << 10;
        leave_window_to_grants(s);
        double sum = 0;
        int looks = 0;
        s.on_event = [&](grants::GrantScheduler& grants, Instant now) {
          if (now < Instant{} + Duration::ms(500) || now > Instant{} + Duration::seconds(2)) return;
          sum += grants.stats(now).pace;
          ++looks;
        };
        const Outcome outcome = run(s);
        REQUIRE(outcome.finished);
        REQUIRE(looks > 10'000);
        // On the short path the window alone keeps losses below a tenth, which slow nothing down.
        if (delay_us > 1000) {
          CHECK(sum / looks > 0.45);
          CHECK(sum / looks < 0.65);
        }
        CHECK(outcome.drops < outcome.packets / 8);
      }
    }
  }
}

TEST_CASE("random losses of up to 5 % slow no pace") {
  for (const double loss : {0.03, 0.05}) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      CAPTURE(loss, seed);
      Scenario s = incast(seed % 2 == 0 ? 4 : 32, 4000);
      s.seed = seed;
      s.delay = Duration::us(seed <= 2 ? 50 : 2000);
      s.loss = loss;
      s.buffer_bytes = 256 << 10;
      leave_window_to_grants(s);
      double min = 1;
      s.on_event = [&](grants::GrantScheduler& grants, Instant now) {
        min = std::min(min, grants.stats(now).pace);
      };
      const Outcome outcome = run(s);
      REQUIRE(outcome.finished);
      REQUIRE(outcome.drops == 0);
      REQUIRE(outcome.losses > 200);
      CHECK(outcome.stats.lost_blocks > 200);
      CHECK(min == 1);
    }
  }
}
