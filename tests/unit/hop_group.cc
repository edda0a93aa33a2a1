// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The members of the group of a node's children, block by block and round by round.
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
  c.group.on_heard(c.member(1), 5, kNow);
  c.open();
  CHECK_FALSE(c.is_member(1));
  c.group.on_heard(c.member(2), 5, kNow);
  c.open(1);
  CHECK_FALSE(c.is_member(0, 1));
  CHECK(c.is_member(1, 1));
  CHECK(c.is_member(2, 1));
}

TEST_CASE("new blocks go to members by the group, and to others alone") {
  Children c(3);
  c.group.on_heard(c.member(0), 5, kNow);
  c.group.on_heard(c.member(1), 5, kNow);
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
  // Packets to the peer alone say nothing about losses of packets to the group.
  CHECK(sender.find_lost(10'000, Duration::us(200), kDirectPath).blocks == 0);
  CHECK(sender.find_lost(10'000, Duration::us(200), kGroupPath).blocks == 2);
  c.edges[1].refresh(0);
  CHECK(c.edges[1].queued == 1);
  CHECK(sender.queued() == 2);  // block 2 is still in flight to the group
  CHECK(sender.take(20'000).block == 0);
  CHECK(c.send() == 2);
  CHECK(sender.find_lost(40'000, Duration::us(200), kGroupPath).blocks == 1);
  CHECK(sender.find_lost(40'000, Duration::us(200), kDirectPath).blocks == 1);
}

TEST_CASE("what has come by the group although it went to others is not sent again") {
  Children c(3);
  c.group.on_heard(c.member(0), 5, kNow);
  c.group.on_heard(c.member(1), 5, kNow);
  c.open();
  c.offer(0);
  c.offer(1);
  CHECK(c.send() == 2);
  BlockSender& alone = c.edges[2].senders[0];
  CHECK(alone.queued() == 2);
  const std::uint64_t first = 1;
  CHECK(alone.on_ack(0, {&first, 1}) == 0);  // the block was not in flight
  CHECK(alone.queued() == 1);
  CHECK(alone.is_acked(0));
  CHECK(alone.take(1).block == 1);
  // An ack of a block that was never sent is not believed.
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
  CHECK(c.send() == 3);
  for (std::uint32_t n = 0; n + 1 < kDeafAfter; ++n) c.group.on_unanswered(c.member(1));
  CHECK(c.is_member(1));
  c.group.on_unanswered(c.member(1));
  CHECK_FALSE(c.is_member(1));
  CHECK(c.edges[1].queued == 1);
  CHECK(c.send() == 2);
  // A late or repeated ack tells nothing about the present.
  c.group.on_heard(c.member(1), c.member(1).newest_echo_us, kNow);
  c.open(1);
  CHECK_FALSE(c.is_member(1, 1));
  c.group.on_heard(c.member(1), c.clock_us + 1, kNow);
  c.open(2);
  CHECK(c.is_member(1, 2));
}

TEST_CASE("what is not answered counts in a row") {
  Children c(2);
  c.all_hear();
  for (std::uint32_t n = 0; n < 3 * kDeafAfter; ++n) {
    c.group.on_unanswered(c.member(0));
    if (n % 2 == 0) c.all_hear();
  }
  c.open();
  CHECK(c.is_member(0));
}

TEST_CASE("a member that has lost much before a block that came still hears") {
  Children c(2);
  c.all_hear();
  c.open();
  c.offer_all();
  for (std::uint32_t b = 0; b < 200; ++b) CHECK(c.send() == 2);
  c.group.on_lost(c.member(0), 199);
  CHECK(c.member(0).hears);
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
  CHECK(c.group.waits_until(0, {}) <= kNow);  // no child takes results yet
  c.group.on_may_begin(0, false, kNow);
  c.group.on_may_begin(0, false, kNow + Duration::ms(1));
  CHECK(c.group.waits_until(0, {}) == kNow + kHeldPatience);
  CHECK(c.group.waits_until(0, Duration::ms(40)) == kNow + Duration::ms(80));
  SECTION("until all have") {
    c.edges[2].release(0);
  }
  SECTION("but no later one") {
    CHECK(c.send() == 2);
  }
  CHECK(c.group.waits_until(0, {}) <= kNow);
}

TEST_CASE("a block that nobody answers shows whether it had gone to the group") {
  Children c(2);
  c.all_hear();
  c.open();
  c.offer(0);
  CHECK(c.send() == 2);
  CHECK(c.edges[0].senders[0].probe(1000).to_group == 1);
  CHECK(c.edges[0].senders[0].take(2000).block == 0);
  CHECK(c.edges[0].senders[0].probe(3000).to_group == 0);  // the block went to the peer alone
}

TEST_CASE("a member that loses more than an eighth listens, however the losses are spread") {
  for (const std::uint32_t lost_of_16 : {1U, 3U}) {
    Children c(3);
    c.all_hear();
    c.open();
    c.offer_all();
    for (std::uint32_t b = 0; b < kBlocks; ++b) {
      CHECK(c.send() == 3);
      if (b % 16 < lost_of_16) c.group.on_lost(c.member(1), 1);
      if (b % 8 == 7) c.group.on_heard(c.member(1), ++c.clock_us + 100, kNow);
    }
    c.group.on_lost(c.member(1), 1);
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
  CHECK_FALSE(c.is_left(2, false, rtt, kNow));
  CHECK_FALSE(c.is_left(2, false, rtt, kNow + kGroupPatience - Duration::us(1)));
  CHECK(c.is_member(2));
  CHECK(c.is_left(2, false, rtt, kNow + kGroupPatience));
  CHECK_FALSE(c.is_member(2));
  CHECK_FALSE(c.is_member(2, 1));  // not a member in any open round
  CHECK(c.is_member(1));
  for (std::uint32_t round = 0; round < kFirstGroupRest; ++round) {
    c.open();
    CHECK(c.edges[2].senders[0].way() == BlockSender::Way::kListener);
  }
  c.open();
  CHECK(c.is_member(2));
  // The child is still slow. Now it rests twice as long, and leaves at once, because it is known to
  // be slow.
  CHECK(c.is_left(2, true, rtt, kNow));
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
  CHECK(c.is_left(2, true));
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
  CHECK(c.is_left(2, true));
  SECTION("all listen") {
    CHECK(c.is_left(0, true));
    CHECK(c.is_left(1, true));
    CHECK(c.send() == 0);
    CHECK(c.group.queued() == 0);
    CHECK(c.edges[0].queued == 1);
  }
  SECTION("the others are deaf") {
    c.go_deaf(0);
    c.go_deaf(1);
    CHECK(c.send() == 0);
  }
  SECTION("the others are held") {
    c.edges[0].hold(0);
    c.edges[1].hold(0);
    c.group.release_listeners(0);
  }
  CHECK(c.edges[2].queued == 1);
}

TEST_CASE("a long path has more patience") {
  Children c(2);
  c.all_hear();
  c.open();
  const Duration rtt = Duration::ms(100);
  CHECK_FALSE(c.is_left(0, false, rtt, kNow));
  CHECK_FALSE(c.is_left(0, false, rtt, kNow + Duration::ms(399)));
  CHECK(c.is_left(0, false, rtt, kNow + Duration::ms(400)));
}

TEST_CASE("critical blocks go to the group before all others, and once") {
  Bitmap critical(kBlocks);
  critical.reset(kBlocks);
  for (const std::size_t b : {200U, 7U, 90U}) critical.set(b);
  Children c(2);
  c.all_hear();
  c.open(0, &critical);
  c.offer_all();
  CHECK(c.edges[0].queued == 0);  // new blocks go to the group, critical or not
  CHECK_FALSE(c.edges[0].senders[0].has_urgent());
  for (const std::uint32_t first : {7U, 90U, 200U, 0U, 1U}) {
    CHECK(c.group.next(0) == first);
    CHECK(c.send() == 2);
  }
  while (c.send() == 2) {
  }
  CHECK(c.group.all_sent(0));
  CHECK(c.edges[0].senders[0].all_sent());
  CHECK(c.edges[0].senders[0].in_flight() == kBlocks);
  // Lost blocks go to the peer alone, critical ones first.
  CHECK(c.edges[0].senders[0].find_lost(10'000, Duration::us(200), kGroupPath).blocks == kBlocks);
  CHECK(c.edges[0].senders[0].has_urgent());
  CHECK(c.edges[0].senders[0].take(20'000).block == 7);
}

TEST_CASE("critical blocks that were never sent go alone when there is no group any more") {
  Bitmap critical(kBlocks);
  critical.reset(kBlocks);
  critical.set(9);
  critical.set(12);
  Children c(2);
  c.all_hear();
  c.open(0, &critical);
  c.offer_all();
  CHECK(c.send() == 2);  // block 9
  BlockSender& sender = c.edges[1].senders[0];
  CHECK(sender.find_lost(10'000, Duration::us(200), kGroupPath).blocks == 1);
  SECTION("it was lost: it goes alone, and the others by the group") {
    CHECK(sender.queued() == 1);
    CHECK(sender.take(20'000).block == 9);
    CHECK_FALSE(sender.has_queued());
  }
  SECTION("a critical block comes by the group to one who only listens") {
    c.is_left(1, true);
    CHECK(c.send() == 1);  // block 12
    const std::uint64_t both = 1U << 9 | 1U << 12;
    CHECK(sender.on_ack(0, {&both, 1}) == 0);
    c.group.stop(0);
    CHECK(sender.queued() == kBlocks - 2);
    CHECK_FALSE(sender.has_urgent());
  }
  SECTION("one is excluded") {
    (void)sender.settle(12);
    c.group.stop(0);
    CHECK(sender.queued() == kBlocks - 1);
  }
  SECTION("the group ends") {
    c.group.stop(0);
    CHECK(sender.queued() == kBlocks);
    CHECK(sender.take(20'000).block == 9);
    CHECK(sender.take(20'000).block == 12);
    CHECK(sender.take(20'000).block == 0);
  }
}

TEST_CASE("an edge may be in several groups, each in rounds of its own") {
  std::vector<OutEdge> edges = Children::edges_to(3);
  const std::vector<OutEdge*> all = Children::pointers_to(edges);
  Group first({.max_blocks = kBlocks}, std::span(all).first(2));
  Group second({.max_blocks = kBlocks}, std::span(all).last(2));
  for (Group* group : {&first, &second}) {
    for (GroupMember& member : group->members()) group->on_heard(member, 5, kNow);
  }
  for (const std::size_t slot : {0U, 1U}) {
    for (OutEdge& edge : edges) edge.senders[slot].open(kRange, 0);
    (slot == 0 ? first : second).open(slot, kRange, 0);
  }
  const auto way = [&edges](std::size_t edge, std::size_t slot) {
    return edges[edge].senders[slot].way();
  };
  CHECK(way(1, 0) == BlockSender::Way::kMember);
  CHECK(way(1, 1) == BlockSender::Way::kMember);
  CHECK(way(2, 0) == BlockSender::Way::kAlone);
  // What one group learns about a child has no effect on another group.
  Children::go_deaf(first, 1);
  CHECK(way(1, 0) == BlockSender::Way::kAlone);
  CHECK(way(1, 1) == BlockSender::Way::kMember);
  CHECK(second.on_waited_for(second.members()[1], 1, {}, true, kNow));
  CHECK(way(2, 1) == BlockSender::Way::kListener);
  first.end(1);  // the first group has no round in this slot
  CHECK(edges[1].seats[1].group == &second);
  second.end(1);
  CHECK(edges[1].seats[1].group == nullptr);
  CHECK(edges[1].seats[0].group == &first);
}
