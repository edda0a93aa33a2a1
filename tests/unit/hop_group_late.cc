// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Members that begin a round late, and members for which the group waits.
#include "tests/unit/group_children.h"

using namespace gradplane;
using namespace gradplane::hop;
using namespace gradplane::hop::testing;

namespace {

using Way = BlockSender::Way;

/// A round of children that hear the group. Some have not begun the round when its first blocks go.
struct LateChildren : Children {
  LateChildren(std::size_t count, std::size_t late) : Children(count) {
    all_hear();
    open();
    for (std::size_t child = count - late; child < count; ++child) edges[child].hold(0);
    for (std::uint32_t b = 1; b < kBlocks; ++b) offer(b);  // block 0 is not offered yet
  }
  void send_all() {
    while (group.ready(0) > 0 && send() > 0) {
    }
  }
  Way way(std::size_t child) const { return edges[child].senders[0].way(); }
  /// The child acks a block that it got from the group.
  void ack(std::size_t child, std::uint32_t block) {
    (void)edges[child].senders[0].on_arrived(block);
    edges[child].refresh(0);
  }
};

}  // namespace

TEST_CASE("those who begin a round late get by the group what they lack when all others have it") {
  LateChildren c(4, 2);
  while (c.group.ready(0) > 100) CHECK(c.send() == 2);
  c.edges[2].release(0);
  c.edges[3].release(0);
  while (c.group.ready(0) > 0) CHECK(c.send() == 2);
  CHECK_FALSE(c.group.all_sent(0));
  CHECK(c.edges[2].queued == 0);
  c.ack(2, 255);
  c.ack(3, 255);
  c.ack(3, 254);
  c.offer(0);
  CHECK(c.send() == 2);
  CHECK(c.group.ready(0) == kBlocks - 1);  // all blocks that a late child lacks
  CHECK_FALSE(c.group.all_sent(0));
  CHECK(c.way(2) == Way::kMember);
  CHECK(c.edges[2].queued == 0);
  std::size_t takers = 0;
  while (const std::size_t more = c.send()) takers += more;
  CHECK(takers == 2 * kBlocks - 3);
  CHECK(c.group.all_sent(0));
  CHECK(c.group.queued() == 0);
  CHECK(c.edges[2].senders[0].in_flight() == kBlocks - 1);
  CHECK(c.edges[0].senders[0].in_flight() == kBlocks);
}

TEST_CASE("what goes by the group a second time in a round does not go a third time") {
  LateChildren c(6, 4);
  c.send_all();
  c.edges[2].release(0);
  c.edges[3].release(0);
  c.offer(0);
  CHECK(c.send() == 2);
  CHECK(c.way(2) == Way::kMember);
  CHECK(c.way(4) == Way::kAlone);  // child 4 has not begun the round
  c.edges[4].release(0);
  c.edges[5].release(0);
  c.send_all();
  CHECK(c.group.all_sent(0));
  CHECK(c.edges[4].senders[0].queued() == kBlocks);
}

TEST_CASE("a single child that begins a round late gets the rest alone") {
  LateChildren c(3, 1);
  c.send_all();
  c.edges[2].release(0);
  c.offer(0);
  CHECK(c.send() == 2);
  CHECK(c.group.all_sent(0));
  CHECK(c.way(2) == Way::kAlone);
  CHECK(c.edges[2].queued == 1);
}

TEST_CASE("who listens because it was slow is not taken for late") {
  LateChildren c(5, 2);
  CHECK(c.send() == 3);
  c.edges[3].release(0);
  c.edges[4].release(0);
  CHECK(c.is_left(1, true));
  CHECK(c.is_left(4, true));
  c.send_all();
  c.offer(0);
  CHECK(c.send() == 2);
  CHECK(c.group.all_sent(0));
  CHECK(c.way(1) == Way::kAlone);
  CHECK(c.way(3) == Way::kAlone);
  CHECK(c.way(4) == Way::kAlone);
}

TEST_CASE("a round's first block waits for a member that still gets an older round from here") {
  Children c(3);
  c.all_hear();
  for (std::size_t slot = 0; slot < 2; ++slot) {
    for (OutEdge& edge : c.edges) edge.rounds[slot] = static_cast<std::uint32_t>(7 + slot);
    c.open(slot);
  }
  c.edges[2].hold(1);
  c.offer(0);
  c.offer(0, 1);
  const Instant later = kNow + Duration::ms(50);
  c.group.on_may_begin(1, true, kNow);
  const auto waits_until = [&c] { return c.group.waits_until(1, {}); };
  CHECK(waits_until() == kNow + kHeldPatience);
  SECTION("the group has a block for it") {
    c.group.on_may_begin(1, true, later);
    CHECK(waits_until() == later + kHeldPatience);
  }
  SECTION("a block is on its way") {
    CHECK(c.send() == 3);
    c.group.on_may_begin(1, true, later);
    CHECK(waits_until() == later + kHeldPatience);
  }
  SECTION("but not where the round can end without it") {
    c.group.on_may_begin(1, false, later);
    CHECK(waits_until() == kNow + kHeldPatience);
  }
  SECTION("nor for one that has what is here of the older round") {
    CHECK(c.send() == 3);
    for (OutEdge& edge : c.edges) {
      const std::uint64_t first = 1;
      (void)edge.senders[0].on_ack(0, {&first, 1});
      edge.refresh(0);
    }
    c.group.on_may_begin(1, true, later);
    CHECK(waits_until() == kNow + kHeldPatience);
  }
  SECTION("nor for blocks of a newer round") {
    for (OutEdge& edge : c.edges) edge.rounds[0] = 9;
    c.group.on_may_begin(1, true, later);
    CHECK(waits_until() == kNow + kHeldPatience);
  }
}

TEST_CASE("who listens and has not begun waits for a group in which nobody has") {
  Children c(3);
  c.all_hear();
  CHECK(c.is_left(2, true));
  c.open();
  CHECK(c.edges[2].senders[0].way() == Way::kListener);
  for (OutEdge& edge : c.edges) edge.hold(0);
  c.offer_all();
  c.group.release_listeners(0);
  CHECK(c.edges[2].senders[0].way() == Way::kListener);
  c.edges[2].release(0);
  c.group.release_listeners(0);
  CHECK(c.edges[2].senders[0].way() == Way::kAlone);
  CHECK(c.edges[2].queued == 1);
}

TEST_CASE("patience with a member counts in each round") {
  Children c(3);
  c.all_hear();
  c.open();
  c.open(1);
  const Duration rtt = Duration::ms(1);
  const Instant late = kNow + kGroupPatience;
  CHECK_FALSE(c.is_left(2, false, rtt, kNow, 0));
  CHECK_FALSE(c.is_left(2, false, rtt, kNow, 1));
  c.group.on_room(0);  // a block of round 0 goes, none of round 1
  CHECK_FALSE(c.is_left(2, false, rtt, late, 0));
  CHECK(c.is_left(2, false, rtt, late, 1));
  CHECK_FALSE(c.is_member(2, 0));
}
