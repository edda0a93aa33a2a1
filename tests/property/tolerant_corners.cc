// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Corner cases of loss-tolerant gathering, each with a scripted loss in a whole simulated job.
// sim::ToleranceChecker checks every sum. The cases here check what else must have happened.
#include <limits>

#include "tests/property/tolerant_lab.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::tolerant_lab;

TEST_CASE("what a bound allows does not come, and nobody waits for it") {
  const Compensation compensation =
      GENERATE(Compensation::kZero, Compensation::kRescale, Compensation::kCarry);
  Scenario s = lab_scenario(compensation, {plain_bucket(1)}, 4);
  s.link.lose = [](std::uint16_t from, std::uint16_t, const testing::SeenPacket& h) {
    return is_push(h, 2) && from == 1 && h.block >= kFirstLossy &&
           h.block < kFirstLossy + kAllowance;
  };
  add_closing_rounds(s);
  const Outcome outcome = run(s);
  CHECK(outcome.failure == "");
  CHECK(count(outcome, CloseReason::kEarly) == 1);
  CHECK(outcome.tolerance.missing_blocks == kAllowance);
  CHECK(outcome.counters.blocks_excluded == kAllowance);
  const bool carries = compensation == Compensation::kCarry;
  CHECK(outcome.counters.blocks_carried == (carries ? kAllowance : 0));
}

TEST_CASE("a relay closes early, and its root counts what is missing once") {
  Scenario s = lab_scenario(Compensation::kRescale, {plain_bucket(1)}, 4);
  s.plan.members.push_back({.node = 4, .ranks = {}});
  s.plan.trees[0].parent = {api::kNoNode, 4, 4, 4, 0};
  s.link.lose = [](std::uint16_t from, std::uint16_t, const testing::SeenPacket& h) {
    return is_push(h, 2) && from == 1 && h.block >= kFirstLossy &&
           h.block < kFirstLossy + kAllowance;
  };
  const Outcome outcome = run(s);
  CHECK(outcome.failure == "");
  CHECK(count(outcome, CloseReason::kEarly) == 1);
  CHECK(outcome.counters.rounds_closed_early == 2);
  CHECK(outcome.counters.blocks_missing == kAllowance);
}

TEST_CASE("one block more than a bound allows is waited for until the deadline") {
  Scenario s = lab_scenario(Compensation::kRescale, {plain_bucket(1)}, 4);
  s.link.lose = [](std::uint16_t from, std::uint16_t, const testing::SeenPacket& h) {
    return is_push(h, 2) && from == 1 && h.block >= kFirstLossy &&
           h.block <= kFirstLossy + kAllowance;
  };
  const Outcome outcome = run(s);
  CHECK(outcome.failure == "");
  CHECK(count(outcome, CloseReason::kEarly) == 0);
  CHECK(count(outcome, CloseReason::kDeadline) == 1);
  CHECK(outcome.tolerance.missing_blocks == kAllowance + 1);
}

TEST_CASE("a critical block is waited for as long as it takes") {
  Scenario s = lab_scenario(Compensation::kRescale, {plain_bucket(1)}, 2);
  const Instant restored = Instant() + Duration::seconds(2);
  // The time is from the sender's clock.
  s.link.lose = [restored](std::uint16_t from, std::uint16_t, const testing::SeenPacket& h) {
    const bool early = h.timestamp_us < static_cast<std::uint32_t>(restored.count_ns() / 1000);
    return is_push(h, 2) && from == 1 && early && (h.block == 0 || h.block == kFirstLossy);
  };
  const Outcome outcome = run(s);
  CHECK(outcome.failure == "");
  CHECK(outcome.ended > restored);
  CHECK(outcome.tolerance.missing_blocks <= 1);
}

TEST_CASE("no block of a tensor arrives from anybody") {
  const Compensation compensation =
      GENERATE(Compensation::kZero, Compensation::kRescale, Compensation::kCarry);
  Scenario s = lab_scenario(
      compensation, {bucket_of(1, {{20 * kBlockElements, 0.1F}, {10 * kBlockElements, 0.1F}})}, 4);
  s.link.lose = [](std::uint16_t, std::uint16_t, const testing::SeenPacket& h) {
    return is_push(h, 2) && h.block >= 20;
  };
  add_closing_rounds(s);
  const Outcome outcome = run(s);
  CHECK(outcome.failure == "");
  CHECK(count(outcome, CloseReason::kDeadline) == 1);
  CHECK(outcome.tolerance.missing_blocks == 3 * 10);
  CHECK(outcome.tolerance.partial_blocks == 10);
}

TEST_CASE("all blocks of a rank are missing: it is gone on without, where that is allowed") {
  Scenario s = lab_scenario(Compensation::kCarry, {plain_bucket(1)}, 2);
  s.link.lose = [](std::uint16_t from, std::uint16_t, const testing::SeenPacket& h) {
    return is_push(h, 2) && from == 3 && h.timestamp_us < 200'000;
  };
  add_closing_rounds(s);
  SECTION("it is waited for by default") {
    const Outcome outcome = run(s);
    CHECK(outcome.failure == "");
    CHECK(count(outcome, CloseReason::kAbsent) == 0);
    CHECK(outcome.ended > Instant() + Duration::ms(200));
  }
  SECTION("not for ever, where so configured") {
    s.tolerance.absent_after = Duration::ms(20);
    const Outcome outcome = run(s);
    CHECK(outcome.failure == "");
    CHECK(count(outcome, CloseReason::kAbsent) == 1);
    CHECK(outcome.tolerance.missing_blocks == 42);
    CHECK(outcome.counters.blocks_carried == 42);
  }
}

TEST_CASE("a rank joins a round after it has closed without it") {
  const Compensation compensation =
      GENERATE(Compensation::kZero, Compensation::kRescale, Compensation::kCarry);
  Scenario s = lab_scenario(compensation, {plain_bucket(1)}, 5);
  s.tolerance.absent_after = Duration::ms(20);
  s.compute_max_of_rank = {{}, Duration::ms(300), {}};
  s.seed = 5;
  add_closing_rounds(s);
  const Outcome outcome = run(s);
  CHECK(outcome.failure == "");
  CHECK(count(outcome, CloseReason::kAbsent) >= 2);
  CHECK(outcome.counters.blocks_late > 0);
  CHECK(outcome.counters.blocks_excluded == outcome.tolerance.missing_blocks);
}

TEST_CASE("a bucket smaller than a packet is exact, whatever its bound") {
  Scenario s = lab_scenario(Compensation::kRescale, {bucket_of(1, {{10, 0.5F}})}, 8);
  s.link.loss = 0.3;
  s.tolerance.slack = Duration::us(100);
  const Outcome outcome = run(s);
  CHECK(outcome.failure == "");
  CHECK(count(outcome, CloseReason::kFull) == 9);
  CHECK(outcome.packets_dropped > 0);
}

TEST_CASE("tensors of one element are exact, and make the blocks that they share exact") {
  std::vector<TensorSpec> tensors(50, {1, 0.5F});
  tensors.push_back({10 * kBlockElements, 0.5F});
  Scenario s = lab_scenario(Compensation::kCarry, {bucket_of(1, tensors)}, 8);
  s.link.loss = 0.2;
  s.tolerance.slack = Duration::us(100);
  s.link.lose = [](std::uint16_t from, std::uint16_t, const testing::SeenPacket& h) {
    return is_push(h, 2) && from == 1 && h.block >= 2 && h.block < 5;
  };
  add_closing_rounds(s);
  const Outcome outcome = run(s);
  CHECK(outcome.failure == "");
  CHECK(outcome.tolerance.missing_blocks >= 3);
}

TEST_CASE("a rebuilt layout has a new id, and both are summed") {
  // It has as many elements, but other tensors: elements that were exact may now be missing.
  const auto rebuilt = bucket_of(2, {{40 * kBlockElements, 0.2F}, {2 * kBlockElements, 0}});
  Scenario s = lab_scenario(Compensation::kCarry, {plain_bucket(1), rebuilt}, 3);
  for (int n = 0; n < 4; ++n) s.rounds.push_back(sim::round_of(rebuilt));
  s.link.lose = [](std::uint16_t from, std::uint16_t, const testing::SeenPacket& h) {
    const bool of_first = h.block >= 34 && h.bucket == 1;
    const bool of_second = h.block < 8 && h.bucket == 2;
    return (is_push(h, 2) || is_push(h, 6)) && from == 1 && (of_first || of_second);
  };
  add_closing_rounds(s);
  const Outcome outcome = run(s);
  CHECK(outcome.failure == "");
  CHECK(count(outcome, CloseReason::kEarly) == 2);
  CHECK(outcome.tolerance.missing_blocks == 16);
}

TEST_CASE("what is no finite number is not carried") {
  const double bad =
      GENERATE(std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity());
  Scenario s = lab_scenario(Compensation::kCarry, {plain_bucket(1)}, 4);
  s.tolerance.poison = {{.round = 2, .rank = 0, .element = 5 * kBlockElements + 7, .value = bad}};
  add_closing_rounds(s);
  SECTION("it is lost with its block") {
    s.link.lose = [](std::uint16_t from, std::uint16_t, const testing::SeenPacket& h) {
      return is_push(h, 2) && from == 1 && (h.block == 5 || h.block == 6);
    };
    const Outcome outcome = run(s);
    CHECK(outcome.failure == "");
    CHECK(outcome.tolerance.missing_blocks == 2);
    CHECK(outcome.counters.carry_dropped == 1);
    CHECK(outcome.counters.blocks_carried == 1);
  }
  SECTION("it is in the sum for all to see when nothing is lost") {
    const Outcome outcome = run(s);
    CHECK(outcome.failure == "");
    CHECK(outcome.counters.carry_dropped == 0);
  }
}

TEST_CASE("ten thousand tensors") {
  std::vector<TensorSpec> tensors(9990, {20, 0.5F});
  tensors.resize(10'000, {8000, 0.1F});
  Scenario s = lab_scenario(Compensation::kRescale, {bucket_of(1, tensors)}, 3);
  s.round_bytes = std::size_t{1200} << 10;
  s.link.loss = 0.02;
  s.tolerance.slack = Duration::us(100);
  const Outcome outcome = run(s);
  CHECK(outcome.failure == "");
  CHECK(count(outcome, CloseReason::kFull) + count(outcome, CloseReason::kEarly) +
            count(outcome, CloseReason::kDeadline) ==
        4);
  CHECK(outcome.tolerance.missing_blocks > 0);
}

TEST_CASE("what is kept waits for steps that accumulate gradients without the bucket") {
  const auto other = bucket_of(2, {{5 * kBlockElements, 0}});
  Scenario s = lab_scenario(Compensation::kCarry, {plain_bucket(1), other}, 2);
  for (int n = 0; n < 40; ++n) s.rounds.push_back(sim::round_of(other));
  s.rounds.push_back(sim::round_of(s.tolerance.buckets[0]));
  s.link.lose = [](std::uint16_t from, std::uint16_t, const testing::SeenPacket& h) {
    return is_push(h, 2) && from == 2 && h.block >= 10 && h.block < 15;
  };
  // The only use at the end brings all of it, in a round that may be partial.
  s.tolerance.closing_rounds = 1;
  const Outcome outcome = run(s);
  CHECK(outcome.failure == "");
  CHECK(outcome.tolerance.missing_blocks == 5);
  CHECK(outcome.counters.blocks_carried == 5);
}

TEST_CASE("a bucket is submitted again before its last round is done") {
  const Compensation compensation =
      GENERATE(Compensation::kZero, Compensation::kRescale, Compensation::kCarry);
  Scenario s = lab_scenario(compensation, {plain_bucket(1)}, 9);
  s.tolerance.overlap = true;
  s.in_flight = kMaxInFlightRounds;
  s.link.lose = [](std::uint16_t from, std::uint16_t, const testing::SeenPacket& h) {
    return h.type == wire::PacketType::kPush && h.round > 0 && from == 1 + h.round % 3 &&
           h.block >= 4 && h.block < 9 && h.bucket == 1;
  };
  add_closing_rounds(s);
  const Outcome outcome = run(s);
  CHECK(outcome.failure == "");
  CHECK(outcome.tolerance.missing_blocks >= 9 * 5);
}

TEST_CASE("a host that never hears of the bounds loses nothing") {
  Scenario s = lab_scenario(Compensation::kCarry, {plain_bucket(1)}, 8);
  s.tolerance.installations = {{.member = 2, .bucket = 1, .after = Duration::max()}};
  s.link.loss = 0.1;
  s.tolerance.slack = Duration::us(100);
  add_closing_rounds(s);
  const Outcome outcome = run(s);
  CHECK(outcome.failure == "");
}

TEST_CASE("whole numbers and rounds without a bucket lose nothing") {
  api::BucketBounds numbers = plain_bucket(1);
  numbers.type = ElementType::kInt32;
  Scenario s = lab_scenario(Compensation::kRescale, {numbers}, 8);
  for (int n = 0; n < 8; ++n) s.rounds.push_back({ElementType::kFloat32, 5000, 0});
  s.link.loss = 0.2;
  s.tolerance.slack = Duration::us(100);
  const Outcome outcome = run(s);
  CHECK(outcome.failure == "");
  CHECK(outcome.tolerance.missing_blocks == 0);
  CHECK(outcome.counters.blocks_missing == 0);
}

TEST_CASE("a bucket that is submitted again too early is gathered under its bounds all the same") {
  constexpr std::uint32_t kRounds = 6;
  Scenario s = lab_scenario(Compensation::kCarry, {plain_bucket(1)}, kRounds);
  s.plan = sim::sharded(3);
  s.tolerance.overlap = true;
  s.in_flight = 4;
  const Outcome outcome = run(s);
  CHECK(outcome.failure == "");
  CHECK(count(outcome, CloseReason::kFull) == 3 * (kRounds + 1));
}
