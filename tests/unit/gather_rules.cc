// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// When a round that lacks blocks may close: LTP's rule with a bound for each tensor.
#include "tests/support/catch.h"
#include "tests/unit/gather_rig.h"

using namespace gradplane;
using namespace gradplane::testing;
using aggregate::Gather;
using Rig = GatherRig;

TEST_CASE("of an exchange, only who sends is waited for, counted and learned from") {
  Rig rig({.strict_rounds = 0, .slack = Duration::ms(30)}, 3);
  rig.learn(Duration::ms(10));
  const std::uint64_t hosts_1_and_2 = 0b110;
  rig.gather->open({0, kBlocks}, {&hosts_1_and_2, 1});
  CHECK(rig.gather->hosts_taking_part() == 2);
  CHECK(rig.gather->missing_blocks() == 2 * kBlocks);
  rig.arrive(1, 0, kBlocks, Duration::ms(1), true);
  CHECK_FALSE(rig.gather->all_arrived());
  CHECK(rig.gather->hosts_lacking(0) == 1);
  rig.arrive(2, 0, kBlocks, Duration::ms(2), true);
  CHECK(rig.gather->all_arrived());
  CHECK(rig.gather->missing_blocks() == 0);
  const std::uint64_t before = rig.gather->report(0).expected_blocks;
  rig.gather->close(CloseReason::kFull, kStart + Duration::ms(2));
  CHECK(rig.gather->last_round(CloseReason::kFull, kStart).source_count == 2);
  CHECK(rig.gather->report(0).expected_blocks == before);
  CHECK(rig.gather->report(1).expected_blocks == before + kBlocks);
  // In the next round all sources take part again.
  rig.gather->open({0, kBlocks});
  CHECK(rig.gather->missing_blocks() == 3 * kBlocks);
}

TEST_CASE("early: the time is over, everything was sent, every tensor is in its bound") {
  Rig rig;
  rig.learn(Duration::ms(50));
  rig.gather->open({0, kBlocks});
  rig.arrive(0, 0, kBlocks, Duration{}, true);
  rig.arrive(1, 0, 91, Duration{}, true);
  CHECK_FALSE(rig.at(Duration::ms(49)));
  CHECK(rig.at(Duration::ms(50)) == CloseReason::kEarly);
  CHECK(rig.gather->missing_blocks() == 9);
}

TEST_CASE("one block over a tensor's bound waits for the deadline") {
  Rig rig;
  rig.learn(Duration::ms(50));
  rig.gather->open({0, kBlocks});
  rig.arrive(0, 0, kBlocks, Duration{}, true);
  rig.arrive(1, 0, 90, Duration{}, true);
  CHECK_FALSE(rig.at(Duration::ms(50)));
  CHECK_FALSE(rig.at(Duration::ms(79)));
  CHECK(rig.at(Duration::ms(80)) == CloseReason::kDeadline);
}

TEST_CASE("a critical block is waited for, past every deadline") {
  Rig rig;
  rig.learn(Duration::ms(50));
  rig.gather->open({0, kBlocks});
  rig.arrive(0, 0, kBlocks, Duration{}, true);
  rig.arrive(1, 1, kBlocks, Duration{}, true);
  CHECK_FALSE(rig.at(Duration::seconds(100)));
  rig.arrive(1, 0, 1, Duration::seconds(100));
  CHECK(rig.gather->missing_blocks() == 0);
}

TEST_CASE("what is on its way for the first time is waited for longer than what was lost") {
  Rig rig;
  rig.learn(Duration::ms(50));
  rig.gather->open({0, kBlocks});
  rig.arrive(0, 0, kBlocks, Duration{}, true);
  rig.arrive(1, 0, 95, Duration{});
  CHECK_FALSE(rig.at(Duration::ms(79)));
  CHECK(rig.at(Duration::ms(80)) == CloseReason::kEarly);
}

TEST_CASE("a source's clock starts with its first block, and without one nothing closes") {
  Rig rig;
  rig.learn(Duration::ms(50));
  rig.gather->open({0, kBlocks});
  rig.arrive(0, 0, 95, Duration{}, true);
  CHECK_FALSE(rig.at(Duration::seconds(100)));
  rig.arrive(1, 0, 95, Duration::seconds(1), true);
  CHECK_FALSE(rig.at(Duration::seconds(1) + Duration::ms(49)));
  CHECK(rig.at(Duration::seconds(1) + Duration::ms(50)) == CloseReason::kEarly);
}

TEST_CASE("a source that does not know the bounds is gathered exactly") {
  Rig rig;
  rig.learn(Duration::ms(50));
  rig.gather->open({0, kBlocks});
  rig.arrive(0, 0, kBlocks, Duration{}, true);
  rig.arrive(1, 0, 95, Duration{}, true, false);
  CHECK_FALSE(rig.at(Duration::seconds(100)));
}

TEST_CASE("the floor holds an early close back, whatever the bounds allow") {
  aggregate::CloseLimits limits{.floor = 0.9F, .strict_rounds = 0, .slack = Duration::ms(30)};
  Rig rig(limits, 2, 0.5F);
  rig.learn(Duration::ms(50));
  rig.gather->open({0, kBlocks});
  rig.arrive(0, 0, kBlocks, Duration{}, true);
  rig.arrive(1, 0, 89, Duration{}, true);
  CHECK_FALSE(rig.at(Duration::ms(60)));
  rig.arrive(1, 89, 90, Duration::ms(60), true);
  CHECK(rig.at(Duration::ms(60)) == CloseReason::kEarly);
}

TEST_CASE("the first rounds are exact, and so is one before anything is learned") {
  Rig strict({.strict_rounds = 2, .slack = Duration::ms(30)});
  strict.learn(Duration::ms(50));
  strict.gather->open({0, kBlocks});
  strict.arrive(0, 0, 95, Duration{}, true);
  strict.arrive(1, 0, 95, Duration{}, true);
  CHECK_FALSE(strict.at(Duration::seconds(1)));
  strict.gather->close(CloseReason::kFull, kStart + Duration::seconds(1));
  strict.gather->open({0, kBlocks});
  strict.arrive(0, 0, 95, Duration{}, true);
  strict.arrive(1, 0, 95, Duration{}, true);
  CHECK(strict.at(Duration::seconds(1)) == CloseReason::kEarly);

  Rig unlearned;
  unlearned.gather->open({0, kBlocks});
  unlearned.arrive(0, 0, 95, Duration{}, true);
  unlearned.arrive(1, 0, 95, Duration{}, true);
  CHECK_FALSE(unlearned.at(Duration::seconds(1)));
}

TEST_CASE("a source that sends nothing is gone on without after its time, if there is one") {
  Rig rig({.strict_rounds = 0, .slack = Duration::ms(30), .absent_after = Duration::ms(500)});
  rig.learn(Duration::ms(50));
  rig.gather->open({0, kBlocks});
  CHECK_FALSE(rig.at(Duration::seconds(100)));  // no source has begun the round
  rig.arrive(0, 0, kBlocks, Duration{}, true);
  // The limit is 500 ms, the time of a repair, and a round trip, in which the source may have
  // waited for a result.
  CHECK_FALSE(rig.at(Duration::ms(504)));
  CHECK(rig.at(Duration::ms(505)) == CloseReason::kAbsent);
  CHECK(rig.gather->missing_blocks() == kBlocks);
}

TEST_CASE("a source that falls silent in the middle of a round is absent, too") {
  Rig rig({.strict_rounds = 0, .slack = Duration::ms(30), .absent_after = Duration::ms(500)});
  rig.learn(Duration::ms(50));
  rig.gather->open({0, kBlocks});
  rig.arrive(0, 0, kBlocks, Duration{}, true);
  rig.arrive(1, 5, 10, Duration::ms(100));
  // The limit is 500 ms after the last block, and the time of a repair that may be on its way.
  CHECK_FALSE(rig.at(Duration::ms(602)));
  CHECK(rig.at(Duration::ms(603)) == CloseReason::kAbsent);
  CHECK(rig.gather->missing_blocks() == kBlocks - 5);
  rig.arrive(1, 10, 11, Duration::ms(603));
  CHECK_FALSE(rig.at(Duration::ms(1105)));
}

TEST_CASE("a node whose children are all silent waits from when its own ranks are there") {
  Rig rig({.strict_rounds = 0, .slack = Duration::ms(30), .absent_after = Duration::ms(500)});
  rig.learn(Duration::ms(50));
  rig.gather->open({0, kBlocks});
  CHECK_FALSE(rig.at(Duration::seconds(100)));
  rig.gather->begin(kStart + Duration::seconds(100));
  rig.gather->begin(kStart + Duration::seconds(101));
  CHECK_FALSE(rig.at(Duration::ms(100'504)));
  CHECK(rig.at(Duration::ms(100'505)) == CloseReason::kAbsent);
}

TEST_CASE("a threshold is what rounds take, not what the shortest took, and follows the path") {
  aggregate::CompletionThreshold threshold;
  CHECK_FALSE(threshold.value());
  threshold.add(Duration::ms(50));
  threshold.add(Duration::ms(20));
  threshold.add(Duration::ms(90));
  CHECK(threshold.value() == Duration::ms(50));
  for (const Duration path : {Duration::ms(90), Duration::ms(10)}) {
    for (std::size_t n = 0; n < aggregate::CompletionThreshold::kWindowRounds / 2 + 3; ++n) {
      threshold.add(path);
    }
    CHECK(threshold.value() == path);
  }
}

TEST_CASE("what a repair took longer than it was worth teaches nothing") {
  Rig rig;
  rig.gather->open({0, kBlocks});
  rig.arrive(0, 0, kBlocks, Duration{}, true);
  rig.arrive(1, 0, 1, Duration{});
  rig.arrive(1, 1, 95, Duration::ms(80), true);
  rig.arrive(1, 95, kBlocks, Duration::ms(180));
  rig.gather->close(CloseReason::kFull, kStart + Duration::ms(180));
  CHECK(rig.gather->report(1).threshold_ns == Duration::ms(83).count_ns());
}

TEST_CASE("a deadline that cut a source off teaches a longer threshold") {
  Rig rig;
  rig.learn(Duration::ms(50));
  for (int n = 0; n < 70; ++n) {
    // The path has become slow. At the deadline, half of the blocks have not been sent.
    rig.gather->open({0, kBlocks});
    rig.arrive(0, 0, kBlocks, Duration::ms(50), true);
    rig.arrive(1, 0, 50, Duration{});
    rig.gather->close(CloseReason::kDeadline, kStart + Duration::ms(80));
  }
  CHECK(rig.gather->report(1).threshold_ns == Duration::ms(160).count_ns());
  CHECK(rig.gather->report(0).threshold_ns == Duration{}.count_ns());
}

TEST_CASE("what was lost and not repaired teaches the time of one repair, or of an eighth more") {
  for (const auto& [sent_all, taught] : {std::pair(Duration::ms(80), Duration::ms(83)),
                                         std::pair(Duration::ms(8), Duration::ms(9))}) {
    Rig rig;
    rig.gather->open({0, kBlocks});
    rig.arrive(0, 0, 1, Duration{});
    rig.arrive(0, 1, 95, sent_all, true);
    rig.arrive(1, 0, kBlocks, Duration{}, true);
    rig.gather->close(CloseReason::kEarly, kStart + Duration::ms(100));
    CHECK(rig.gather->report(0).threshold_ns == taught.count_ns());
  }
}

TEST_CASE("the slack follows the spread, not the outliers") {
  aggregate::DeadlineSlack slack;
  CHECK(slack.value() == Duration::ms(30));
  for (std::size_t n = 0; n < aggregate::DeadlineSlack::kSamples; ++n) slack.add(Duration::ms(0));
  CHECK(slack.value() == Duration::ms(5));
  for (std::size_t n = 0; n < aggregate::DeadlineSlack::kSamples; ++n) {
    slack.add(Duration::ms(n % 2 == 0 ? 20 : 40));
  }
  CHECK(slack.value() >= Duration::ms(40));
  slack.add(Duration::seconds(100));
  CHECK(slack.value() <= Duration::ms(160));
}

TEST_CASE("a gathering counts what each source and tensor lacked") {
  Rig rig;
  rig.gather->open({0, kBlocks});
  rig.arrive(0, 0, kBlocks, Duration{}, true);
  rig.arrive(1, 0, 97, Duration{}, true);
  rig.gather->close(CloseReason::kDeadline, kStart);
  CHECK(rig.gather->report(0).missing_blocks == 0);
  CHECK(rig.gather->report(1).missing_blocks == 3);
  CHECK(rig.gather->report(1).expected_blocks == kBlocks);
  CHECK(rig.gather->hosts_lacking(96) == 0);
  CHECK(rig.gather->hosts_lacking(97) == 1);
}

TEST_CASE("a bound that is lowered to nothing makes its tensor critical from the next round on") {
  Rig rig;
  rig.learn(Duration::ms(50));
  rig.bounds[1] = 0;
  rig.gather->open({0, kBlocks});
  rig.arrive(0, 0, kBlocks, Duration{}, true);
  rig.arrive(1, 0, 99, Duration{}, true);
  CHECK_FALSE(rig.at(Duration::seconds(100)));
}

TEST_CASE("a source that is cut off while it sends gets more time in the very next round") {
  Rig rig;
  rig.learn(Duration::ms(50));
  rig.gather->open({0, kBlocks});
  rig.arrive(0, 0, kBlocks, Duration{}, true);
  rig.arrive(1, 0, 50, Duration{});
  rig.gather->close(CloseReason::kDeadline, kStart + Duration::ms(80));
  CHECK(rig.gather->report(1).threshold_ns == Duration::ms(160).count_ns());
}

TEST_CASE("the deadline leaves a long path the time of a repair, however small the slack") {
  Rig rig({.strict_rounds = 0, .slack = Duration::ms(1)});
  rig.learn(Duration::ms(50));
  rig.gather->open({0, kBlocks});
  rig.arrive(0, 0, kBlocks, Duration{}, true);
  rig.arrive(1, 0, 80, Duration{}, true);
  CHECK_FALSE(rig.at(Duration::ms(52)));
  CHECK(rig.at(Duration::ms(53)) == CloseReason::kDeadline);
}

TEST_CASE("a source that never knew the bounds is not gone on without") {
  Rig rig({.strict_rounds = 0, .slack = Duration::ms(30), .absent_after = Duration::ms(500)});
  rig.gather->open({0, kBlocks});
  rig.arrive(0, 0, kBlocks, Duration{}, true);
  CHECK_FALSE(rig.at(Duration::seconds(100)));
}

TEST_CASE("the floor holds at the deadline too") {
  Rig rig;
  rig.learn(Duration::ms(50));
  rig.gather->open({0, kBlocks});
  rig.arrive(0, 0, kBlocks, Duration{}, true);
  rig.arrive(1, 0, 49, Duration{}, true);
  CHECK_FALSE(rig.at(Duration::seconds(100)));
  rig.arrive(1, 49, 50, Duration::ms(1), true);
  CHECK(rig.at(Duration::seconds(100)) == CloseReason::kDeadline);
}

TEST_CASE("deadline closes teach the slack") {
  Rig rig({.strict_rounds = 0});
  rig.learn(Duration::ms(50));
  for (int n = 0; n < 40; ++n) {
    rig.gather->open({0, kBlocks});
    rig.arrive(0, 0, 1, Duration{});
    rig.arrive(0, 1, kBlocks, Duration::ms(50), true);
    rig.arrive(1, 0, 80, Duration{}, true);
    rig.gather->close(CloseReason::kDeadline, kStart + Duration::ms(250));
  }
  rig.gather->open({0, kBlocks});
  rig.arrive(0, 0, kBlocks, Duration{}, true);
  rig.arrive(1, 0, 80, Duration{}, true);
  CHECK_FALSE(rig.at(Duration::ms(200)));
  CHECK(rig.at(Duration::ms(400)) == CloseReason::kDeadline);
}
