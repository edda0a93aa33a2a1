// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Rounds under bounds with real packets: a root, two leaves, and a network that loses the packets
// that a test names.
#include <limits>

#include "tests/support/bounded_star.h"
#include "tests/support/catch.h"
#include "tests/support/packet.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

constexpr std::uint32_t kBlocks = BoundedStar::kBlocks;
constexpr std::uint16_t kLeaves = BoundedStar::kLeaves;

/// Blocks 12 and 15 of leaf 2 never arrive.
bool loses_two(std::uint16_t from, const Sent& packet) {
  return from == 2 && is_push_of(packet, {12, 15});
}

}  // namespace

TEST_CASE("what is within its bound may be missing: the sum of those that came, rescaled") {
  BoundedStar star({.compensation = Compensation::kRescale});
  star.learn();
  REQUIRE(star.submit(1, 1, 3) == job::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 1, 5) == job::SubmitResult::kAccepted);
  star.pass(Duration::ms(60), loses_two);
  for (std::uint16_t leaf = 1; leaf <= kLeaves; ++leaf) {
    CAPTURE(leaf);
    REQUIRE(star.done(leaf));
    CHECK(star.event(leaf).contributors == 1);
    CHECK(star.event(leaf).partial_blocks == 2);
    for (std::uint32_t b = 0; b < kBlocks; ++b) {
      CAPTURE(b);
      CHECK(star.result(leaf, 1, b) == (b == 12 || b == 15 ? 6 : 8));
    }
  }
  CHECK(star.node(0).job().counters().rounds_closed_early == 1);
  CHECK(star.node(0).job().counters().blocks_missing == 2);
  CHECK(star.node(2).job().counters().blocks_excluded == 2);
  CHECK(star.node(1).job().counters().blocks_excluded == 0);
  CHECK(star.bucket(0).closes(CloseReason::kEarly) == 1);
  CHECK(star.bucket(0).missing_blocks(1) == 2);
  CHECK(star.bucket(0).missing_blocks(0) == 0);
  CHECK(star.bucket(2).excluded_blocks(1) == 2);
}

TEST_CASE("what is written off has its part in the iteration's progress") {
  BoundedStar star({.compensation = Compensation::kRescale, .grants = true});
  star.learn();
  REQUIRE(star.submit(1, 1, 3) == job::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 1, 5) == job::SubmitResult::kAccepted);
  star.pass(Duration::ms(60), loses_two);
  REQUIRE(star.done(1));
  REQUIRE(star.node(0).job().counters().blocks_missing == 2);
  CHECK(star.node(0).node().grants().view(star.node(0).job().sources()[0]).job_progress == 1);
}

TEST_CASE("zero leaves the sum as it came") {
  BoundedStar star({.compensation = Compensation::kZero});
  star.learn();
  REQUIRE(star.submit(1, 1, 3) == job::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 1, 5) == job::SubmitResult::kAccepted);
  star.pass(Duration::ms(60), loses_two);
  REQUIRE(star.done(1));
  CHECK(star.result(1, 1, 12) == 3);
  CHECK(star.result(2, 1, 12) == 3);
  CHECK(star.result(2, 1, 13) == 8);
}

TEST_CASE("carry adds what did not enter to the next gradient, and to no other") {
  BoundedStar star({.compensation = Compensation::kCarry});
  star.learn();
  REQUIRE(star.submit(1, 1, 3) == job::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 1, 5) == job::SubmitResult::kAccepted);
  star.pass(Duration::ms(60), loses_two);
  REQUIRE(star.done(2));
  CHECK(star.result(1, 1, 12) == 3);
  for (std::uint32_t round = 2; round < 4; ++round) {
    REQUIRE(star.submit(1, round, 10) == job::SubmitResult::kAccepted);
    REQUIRE(star.submit(2, round, 20) == job::SubmitResult::kAccepted);
    star.pass(Duration::ms(60));
    for (std::uint32_t b = 0; b < kBlocks; ++b) {
      CAPTURE(round, b);
      const bool gets_more = round == 2 && (b == 12 || b == 15);
      CHECK(star.result(1, round, b) == (gets_more ? 35 : 30));
    }
  }
  CHECK(star.node(2).job().counters().blocks_carried == 2);
}

TEST_CASE("a contribution that entered is not carried, though its ack was lost") {
  BoundedStar star({.compensation = Compensation::kCarry});
  star.learn();
  REQUIRE(star.submit(1, 1, 3) == job::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 1, 5) == job::SubmitResult::kAccepted);
  // The acks to leaf 2 are lost until long after the close. Only results arrive there.
  const auto mutes = [](std::uint16_t from, const Sent& packet) {
    return loses_two(from, packet) ||
           (from == 0 && packet.to == 2 && packet.seen().type == wire::PacketType::kPushAck);
  };
  star.pass(Duration::ms(60), mutes);
  CHECK(star.done(1));
  REQUIRE(star.done(2));  // the results name the contributions in them
  CHECK(star.node(2).job().counters().blocks_excluded == 2);
  REQUIRE(star.submit(1, 2, 0) == job::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 2, 0) == job::SubmitResult::kAccepted);
  star.pass(Duration::ms(60));
  for (std::uint32_t b = 0; b < kBlocks; ++b) {
    CAPTURE(b);
    CHECK(star.result(1, 2, b) == (b == 12 || b == 15 ? 5 : 0));
  }
}

TEST_CASE("a critical block is repaired, however long it takes") {
  BoundedStar star({.compensation = Compensation::kRescale});
  star.learn();
  REQUIRE(star.submit(1, 1, 3) == job::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 1, 5) == job::SubmitResult::kAccepted);
  const auto loses = [](std::uint16_t from, const Sent& packet) {
    return from == 2 && is_push_of(packet, {4});
  };
  star.pass(Duration::ms(500), loses);
  CHECK_FALSE(star.done(1));
  star.pass(Duration::ms(100));
  REQUIRE(star.done(1));
  CHECK(star.event(1).partial_blocks == 0);
  CHECK(star.node(0).job().counters().blocks_missing == 0);
}

TEST_CASE("a block that comes after the close enters nothing") {
  BoundedStar star({.compensation = Compensation::kZero});
  star.learn();
  REQUIRE(star.submit(1, 1, 3) == job::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 1, 5) == job::SubmitResult::kAccepted);
  std::vector<Sent> kept;
  star.pass(Duration::ms(60), [&](std::uint16_t from, const Sent& packet) {
    if (!loses_two(from, packet)) return false;
    kept.push_back(packet);
    return true;
  });
  REQUIRE(star.done(2));
  REQUIRE_FALSE(kept.empty());
  star.node(0).deliver(2, kept[0].bytes, Instant::from_ns(2'000'000'000));
  CHECK(star.result(1, 1, 12) == 3);
  REQUIRE(star.submit(1, 2, 1) == job::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 2, 1) == job::SubmitResult::kAccepted);
  star.pass(Duration::ms(60));
  CHECK(star.result(1, 2, 12) == 2);
}

TEST_CASE(
    "a rank that comes after the round has closed gets the same result, and carries its own") {
  BoundedStar star({.compensation = Compensation::kCarry, .absent_after = Duration::ms(200)});
  star.learn();
  REQUIRE(star.submit(1, 1, 3) == job::SubmitResult::kAccepted);
  star.pass(Duration::ms(300));
  REQUIRE(star.done(1));
  CHECK(star.event(1).partial_blocks == kBlocks);
  CHECK(star.node(0).job().counters().rounds_closed_absent == 1);
  REQUIRE(star.submit(2, 1, 5) == job::SubmitResult::kAccepted);
  star.pass(Duration::ms(200));
  REQUIRE(star.done(2));
  for (std::uint32_t b = 0; b < kBlocks; ++b) CHECK(star.result(2, 1, b) == 3);
  REQUIRE(star.submit(1, 2, 10) == job::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 2, 10) == job::SubmitResult::kAccepted);
  star.pass(Duration::ms(60));
  for (std::uint32_t b = 0; b < kBlocks; ++b) CHECK(star.result(1, 2, b) == 25);
}

TEST_CASE("a rank that is behind is sent results of the rounds that it has begun, and no others") {
  constexpr std::uint32_t kBehind = 3;  // the rounds that close without leaf 2
  BoundedStar star({.compensation = Compensation::kCarry, .absent_after = Duration::ms(20)});
  star.learn();
  std::uint32_t sent_to_last = 0;
  const auto count = [&](std::uint16_t from, const Sent& packet) {
    sent_to_last += from == 0 && packet.to == 2 ? 1 : 0;
    return false;
  };
  for (std::uint32_t round = 1; round <= kBehind; ++round) {
    REQUIRE(star.submit(1, round, 3) == job::SubmitResult::kAccepted);
    star.pass(Duration::ms(200), count);
    REQUIRE(star.event(1).round == round);
  }
  REQUIRE(star.node(0).job().counters().rounds_closed_absent == kBehind);
  CHECK(sent_to_last == 0);
  for (std::uint32_t round = 1; round <= kBehind; ++round) {
    REQUIRE(star.submit(2, round, 5) == job::SubmitResult::kAccepted);
    star.pass(Duration::ms(20));
    REQUIRE(star.done(2));
    CHECK(star.event(2).round == round);
    CHECK(star.result(2, round, 12) == 3);
  }
  CHECK(star.node(2).drops(hop::Drop::kFutureRound) == 0);
  CHECK(star.node(0).job().counters().blocks_retransmitted == 0);
}

TEST_CASE("a rank that has the results pushes no more, though it hears no closing ack") {
  BoundedStar star({.compensation = Compensation::kCarry});
  star.learn();
  REQUIRE(star.submit(1, 1, 3) == job::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 1, 5) == job::SubmitResult::kAccepted);
  const auto mutes = [](std::uint16_t from, const Sent& packet) {
    return loses_two(from, packet) ||
           (from == 0 && packet.to == 2 && packet.seen().type == wire::PacketType::kPushAck);
  };
  star.pass(Duration::ms(60), mutes);
  REQUIRE(star.done(2));
  std::uint32_t pushes = 0;
  star.pass(Duration::ms(100), [&](std::uint16_t from, const Sent& packet) {
    pushes += from == 2 && packet.seen().type == wire::PacketType::kPush ? 1 : 0;
    return mutes(from, packet);
  });
  CHECK(pushes == 0);
}

TEST_CASE("a gradient that is not finite is not carried") {
  BoundedStar star({.compensation = Compensation::kCarry});
  star.learn();
  REQUIRE(star.submit(1, 1, 3) == job::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 1, std::numeric_limits<float>::quiet_NaN()) ==
          job::SubmitResult::kAccepted);
  star.pass(Duration::ms(60), loses_two);
  REQUIRE(star.done(2));
  CHECK(star.node(2).job().counters().carry_dropped == 2);
  REQUIRE(star.submit(1, 2, 10) == job::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 2, 10) == job::SubmitResult::kAccepted);
  star.pass(Duration::ms(60));
  CHECK(star.result(1, 2, 12) == 20);
}

TEST_CASE("a bucket's next round waits until this one is done") {
  BoundedStar star({.compensation = Compensation::kCarry});
  star.learn();
  REQUIRE(star.submit(1, 1, 3) == job::SubmitResult::kAccepted);
  CHECK(star.submit(1, 2, 3) == job::SubmitResult::kBusy);
  REQUIRE(star.submit(2, 1, 5) == job::SubmitResult::kAccepted);
  star.pass(Duration::ms(60));
  CHECK(star.submit(1, 2, 3) == job::SubmitResult::kAccepted);
}

TEST_CASE("no result is taken before all local ranks are summed, though the round has closed") {
  BoundedStar star({.compensation = Compensation::kCarry,
                    .absent_after = Duration::ms(200),
                    .ranks_of_last = 2});
  star.learn();
  REQUIRE(star.submit(1, 1, 3) == job::SubmitResult::kAccepted);
  star.pass(Duration::ms(300));
  REQUIRE(star.done(1));
  // This push makes the root believe that leaf 2 has begun the round.
  const PacketBuilder::Round round{
      .id = 1,
      .geometry = Geometry::of(ElementType::kFloat32, BoundedStar::kElements, kMinBlockBytes,
                               BoundedStar::kBucket)};
  const auto push = PacketBuilder::block(wire::PacketType::kPush, round, 12)
                        .sender(2)
                        .contributors(2)
                        .number(1000);
  star.node(0).deliver(2, push.bytes(), star.now());
  Sent closing;
  Sent result;
  star.pass(Duration::ms(100), [&](std::uint16_t from, const Sent& packet) {
    if (from != 0 || packet.to != 2) return false;
    const SeenPacket h = packet.seen();
    if (h.type == wire::PacketType::kPushAck && (h.flags & wire::kFlagClosed) != 0) {
      closing = packet;
    } else if (h.type == wire::PacketType::kResult && h.block == 12) {
      result = packet;
    }
    return true;
  });
  REQUIRE_FALSE(closing.bytes.empty());
  REQUIRE_FALSE(result.bytes.empty());
  REQUIRE(star.submit(2, 1, 5, 0) == job::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 1, 7, 1) == job::SubmitResult::kAccepted);
  star.node(2).deliver(0, closing.bytes, star.now());
  star.node(2).deliver(0, result.bytes, star.now());
  CHECK(star.node(2).drops(hop::Drop::kFutureRound) == 1);
  CHECK(star.result(2, 1, 12, 0) == 5);
  CHECK(star.result(2, 1, 12, 1) == 7);
  star.pass(Duration::ms(200));
  REQUIRE(star.done(2));
  CHECK(star.result(2, 1, 12, 1) == 3);
  for (std::size_t r = 0; r < 2; ++r) {
    REQUIRE(star.submit(2, 2, 10, r) == job::SubmitResult::kAccepted);
  }
  REQUIRE(star.submit(1, 2, 10) == job::SubmitResult::kAccepted);
  star.pass(Duration::ms(60));
  CHECK(star.result(1, 2, 12) == 42);
}
