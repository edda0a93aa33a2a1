// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Who is in the group of a node's children, block by block and round by round.
#include "tests/unit/group_children.h"

using namespace gradplane;
using namespace gradplane::hop;
using namespace gradplane::hop::testing;

TEST_CASE("nobody is in a group that nobody has heard") {
  Children c(3);
  c.open();
  c.offer_all();
  CHECK(c.group.queued() == 0);
  CHECK(c.edges[0].queued == 1);
  CHECK(c.edges[0].senders[0].queued() == kBlocks);
}

TEST_CASE("a group of one is none") {
  Children c(3);
  c.group.on_heard(c.edges[1], 5, kNow);
  c.open();
  CHECK_FALSE(c.is_member(1));
  c.group.on_heard(c.edges[2], 5, kNow);
  c.open(1);
  CHECK_FALSE(c.is_member(0, 1));
  CHECK(c.is_member(1, 1));
  CHECK(c.is_member(2, 1));
}

TEST_CASE("new blocks go to members by the group, and to others alone") {
  Children c(3);
  c.group.on_heard(c.edges[0], 5, kNow);
  c.group.on_heard(c.edges[1], 5, kNow);
  c.open();
  c.offer_all();
  CHECK(c.edges[0].queued == 0);
  CHECK(c.edges[2].queued == 1);
  for (std::uint32_t b = 0; b < kBlocks; ++b) CHECK(c.send() == 2);
  CHECK(c.group.all_sent(0));
  CHECK(c.group.queued() == 0);
  CHECK(c.edges[0].senders[0].in_flight() == kBlocks);
  CHECK(c.edges[2].senders[0].in_flight() == 0);
}

TEST_CASE("what a member has lost goes to it alone") {
  Children c(2);
  c.all_hear();
  c.open();
  c.offer(0);
  c.offer(1);
  c.offer(2);
  CHECK(c.send() + c.send() == 4);
  BlockSender& sender = c.edges[1].senders[0];
  // A packet to the peer alone that has come proves nothing of those to the group.
  CHECK(sender.find_lost(10'000, Duration::us(200), kDirectPath).blocks == 0);
  CHECK(sender.find_lost(10'000, Duration::us(200), kGroupPath).blocks == 2);
  c.edges[1].refresh(0);
  CHECK(c.edges[1].queued == 1);
  CHECK(sender.queued() == 2);  // without block 2, which is the group's
  CHECK(sender.take(20'000).block == 0);
  CHECK(c.send() == 2);
  CHECK(sender.find_lost(40'000, Duration::us(200), kGroupPath).blocks == 1);
  CHECK(sender.find_lost(40'000, Duration::us(200), kDirectPath).blocks == 1);
}

TEST_CASE("what has come by the group although it went to others is not sent again") {
  Children c(3);
  c.group.on_heard(c.edges[0], 5, kNow);
  c.group.on_heard(c.edges[1], 5, kNow);
  c.open();
  c.offer(0);
  c.offer(1);
  CHECK(c.send() == 2);
  BlockSender& alone = c.edges[2].senders[0];
  CHECK(alone.queued() == 2);
  const std::uint64_t first = 1;
  CHECK(alone.on_ack(0, {&first, 1}) == 0);  // it was not in flight
  CHECK(alone.queued() == 1);
  CHECK(alone.is_acked(0));
  CHECK(alone.take(1).block == 1);
  // What never left for it is not believed.
  Children other(3);
  other.open();
  other.offer(0);
  CHECK(other.edges[2].senders[0].on_ack(0, {&first, 1}) == 0);
  CHECK(other.edges[2].senders[0].queued() == 1);
}

TEST_CASE(
    "a member that hears nothing any more gets everything alone, until a new trial is heard") {
  Children c(3);
  c.all_hear();
  c.open();
  c.offer_all();
  for (std::uint32_t b = 0; b < kDeafAfter; ++b) CHECK(c.send() == 3);
  c.group.on_lost(c.edges[1], kDeafAfter - 1);
  CHECK(c.is_member(1));
  c.group.on_lost(c.edges[1], 1);
  CHECK_FALSE(c.is_member(1));
  CHECK(c.edges[1].queued == 1);
  CHECK(c.send() == 2);
  // An ack that is late, or repeated, tells of the time before.
  c.group.on_heard(c.edges[1], c.edges[1].member.newest_echo_us, kNow);
  c.open(1);
  CHECK_FALSE(c.is_member(1, 1));
  c.group.on_heard(c.edges[1], c.clock_us + 1, kNow);
  c.open(2);
  CHECK(c.is_member(1, 2));
}

TEST_CASE("losses count in a row") {
  Children c(2);
  c.all_hear();
  c.group.on_lost(c.edges[0], kDeafAfter - 1);
  c.all_hear();
  c.group.on_lost(c.edges[0], kDeafAfter - 1);
  c.open();
  CHECK(c.is_member(0));
}

TEST_CASE("a child that has not begun the round listens to the rest") {
  Children c(3);
  c.all_hear();
  c.open();
  c.edges[2].hold(0);
  c.offer_all();
  CHECK(c.send() == 2);
  CHECK_FALSE(c.is_member(2));
  CHECK(c.edges[2].senders[0].in_flight() == 0);
  c.edges[2].release(0);
  CHECK(c.edges[2].queued == 0);
  for (std::uint32_t b = 1; b < kBlocks; ++b) CHECK(c.send() == 2);
  CHECK(c.edges[2].senders[0].queued() == kBlocks);
}

TEST_CASE("the first block of a round waits a moment for members that have not begun it") {
  Children c(3);
  c.all_hear();
  c.open();
  c.edges[2].hold(0);
  c.offer_all();
  CHECK(c.group.waits_until(0, c.edges, {}) <= kNow);  // nobody takes results
  c.group.on_may_begin(0, kNow);
  c.group.on_may_begin(0, kNow + Duration::ms(1));
  CHECK(c.group.waits_until(0, c.edges, {}) == kNow + kHeldPatience);
  CHECK(c.group.waits_until(0, c.edges, Duration::ms(40)) == kNow + Duration::ms(80));
  SECTION("until all have") {
    c.edges[2].release(0);
  }
  SECTION("but no later one") {
    CHECK(c.send() == 2);
  }
  CHECK(c.group.waits_until(0, c.edges, {}) <= kNow);
}

TEST_CASE("a block that nobody answers counts as many") {
  Children c(2);
  c.all_hear();
  c.open();
  c.offer(0);
  CHECK(c.send() == 2);
  CHECK(c.edges[0].senders[0].probe(1000).to_group == 1);
  CHECK(c.edges[0].senders[0].take(2000).block == 0);
  CHECK(c.edges[0].senders[0].probe(3000).to_group == 0);  // it went to the peer alone
  for (std::uint32_t n = kUnansweredCounts; n < kDeafAfter; n += kUnansweredCounts)
    c.group.on_lost(c.edges[0], kUnansweredCounts);
  CHECK(c.edges[0].member.hears);
  c.group.on_lost(c.edges[0], kUnansweredCounts);
  CHECK_FALSE(c.edges[0].member.hears);
}

TEST_CASE("a member that loses more than an eighth listens, however the losses are spread") {
  for (const std::uint32_t lost_of_16 : {1U, 3U}) {
    Children c(3);
    c.all_hear();
    c.open();
    c.offer_all();
    for (std::uint32_t b = 0; b < kBlocks; ++b) {
      CHECK(c.send() == 3);
      if (b % 16 < lost_of_16) c.group.on_lost(c.edges[1], 1);
      if (b % 8 == 7) c.group.on_heard(c.edges[1], ++c.clock_us + 100, kNow);
    }
    c.group.on_lost(c.edges[1], 1);
    c.open(1);
    CAPTURE(lost_of_16);
    CHECK(c.is_member(1, 1) == (lost_of_16 == 1));
  }
}

TEST_CASE("who is waited for too long listens for some rounds") {
  Children c(3);
  c.all_hear();
  c.open();
  c.open(1);
  const Duration rtt = Duration::ms(1);
  CHECK_FALSE(Group::on_waited_for(c.edges[2], rtt, false, kNow));
  CHECK_FALSE(
      Group::on_waited_for(c.edges[2], rtt, false, kNow + kGroupPatience - Duration::us(1)));
  CHECK(c.is_member(2));
  CHECK(Group::on_waited_for(c.edges[2], rtt, false, kNow + kGroupPatience));
  CHECK_FALSE(c.is_member(2));
  CHECK_FALSE(c.is_member(2, 1));  // in every open round
  CHECK(c.is_member(1));
  for (std::uint32_t round = 0; round < kFirstGroupRest; ++round) {
    c.open();
    CHECK(c.edges[2].senders[0].way() == BlockSender::Way::kListener);
  }
  c.open();
  CHECK(c.is_member(2));
  // It was not enough: now twice as long, and at once, because it is known to be slow.
  CHECK(Group::on_waited_for(c.edges[2], rtt, true, kNow));
  for (std::uint32_t round = 0; round < 2 * kFirstGroupRest; ++round) {
    c.open();
    CHECK_FALSE(c.is_member(2));
  }
  c.open();
  CHECK(c.is_member(2));
}

TEST_CASE("who listens gets what has not come to it when the group has sent the round") {
  Children c(3);
  c.all_hear();
  c.open();
  c.offer_all();
  CHECK(Group::on_waited_for(c.edges[2], Duration::ms(1), true, kNow));
  BlockSender& listener = c.edges[2].senders[0];
  const std::uint64_t first = 1;
  for (std::uint32_t b = 0; b + 1 < kBlocks; ++b) {
    CHECK(c.send() == 2);
    CHECK(c.edges[2].queued == 0);
  }
  CHECK(listener.in_flight() == 0);
  CHECK(listener.on_ack(0, {&first, 1}) == 0);
  CHECK(c.send() == 2);
  CHECK(c.edges[2].queued == 1);
  CHECK(listener.queued() == kBlocks - 1);
}

TEST_CASE("who listens does not wait for a group that has nobody left") {
  Children c(3);
  c.all_hear();
  c.open();
  for (std::uint32_t b = 0; b < 10; ++b) c.offer(b);
  CHECK(Group::on_waited_for(c.edges[2], Duration::ms(1), true, kNow));
  SECTION("all listen") {
    CHECK(Group::on_waited_for(c.edges[0], Duration::ms(1), true, kNow));
    CHECK(Group::on_waited_for(c.edges[1], Duration::ms(1), true, kNow));
    CHECK(c.send() == 0);
    CHECK(c.group.queued() == 0);
    CHECK(c.edges[0].queued == 1);
  }
  SECTION("the others are deaf") {
    c.group.on_lost(c.edges[0], kDeafAfter);
    c.group.on_lost(c.edges[1], kDeafAfter);
    CHECK(c.send() == 0);
  }
  SECTION("the others are held") {
    c.edges[0].hold(0);
    c.edges[1].hold(0);
    Group::on_all_held(0, c.edges);
  }
  CHECK(c.edges[2].queued == 1);
}

TEST_CASE("a long path has more patience") {
  Children c(2);
  c.all_hear();
  c.open();
  const Duration rtt = Duration::ms(100);
  CHECK_FALSE(Group::on_waited_for(c.edges[0], rtt, false, kNow));
  CHECK_FALSE(Group::on_waited_for(c.edges[0], rtt, false, kNow + Duration::ms(399)));
  CHECK(Group::on_waited_for(c.edges[0], rtt, false, kNow + Duration::ms(400)));
}
