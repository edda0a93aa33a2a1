// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Who is in the group of a node's children, block by block and round by round.
#include <vector>

#include "dataplane/hop/group.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::hop;

namespace {

constexpr std::uint32_t kBlocks = 256;
constexpr BlockRange kRange{0, kBlocks};

/// The edges to the children of one node, and their group, in the round of slot 0.
struct Children {
  explicit Children(std::size_t count) : group(kBlocks) {
    for (std::size_t c = 0; c < count; ++c) {
      OutEdge& edge = edges.emplace_back();
      edge.type = wire::PacketType::kResult;
      edge.senders.assign(kRoundSlots, BlockSender(kBlocks));
    }
  }

  void open(std::size_t slot = 0) {
    for (OutEdge& edge : edges) {
      edge.senders[slot].open(kRange, 0);
      edge.refresh(slot);
    }
    group.open(slot, kRange, 0, edges);
  }
  void offer(std::uint32_t block, std::size_t slot = 0) {
    for (OutEdge& edge : edges) {
      edge.senders[slot].offer(block);
      edge.refresh(slot);
    }
    group.offer(slot, block);
  }
  void offer_all() {
    for (std::uint32_t b = 0; b < kBlocks; ++b) offer(b);
  }
  /// The group's next block leaves; to how many children it counts as in flight.
  std::size_t send(std::size_t slot = 0) {
    const auto block = group.next(slot, edges);
    if (!block) return 0;
    group.on_sent(slot, *block);
    std::size_t takers = 0;
    for (OutEdge& edge : edges) {
      takers += edge.senders[slot].on_group_sent(*block, 100) ? 1 : 0;
      edge.refresh(slot);
    }
    return takers;
  }
  void all_hear() {
    for (OutEdge& edge : edges) Group::on_heard(edge, ++clock_us);
  }
  bool is_member(std::size_t child, std::size_t slot = 0) const {
    return edges[child].senders[slot].is_in_group();
  }

  std::vector<OutEdge> edges;
  Group group;
  std::uint32_t clock_us = 10;
};

}  // namespace

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
  Group::on_heard(c.edges[1], 5);
  c.open();
  CHECK_FALSE(c.is_member(1));
  Group::on_heard(c.edges[2], 5);
  c.open(1);
  CHECK_FALSE(c.is_member(0, 1));
  CHECK(c.is_member(1, 1));
  CHECK(c.is_member(2, 1));
}

TEST_CASE("new blocks go to members by the group, and to others alone") {
  Children c(3);
  Group::on_heard(c.edges[0], 5);
  Group::on_heard(c.edges[1], 5);
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
  const BlockSender::Lost lost = c.edges[1].senders[0].find_lost(10'000, Duration::us(200));
  CHECK(lost.blocks == 2);
  CHECK(lost.of_group == 2);
  c.edges[1].refresh(0);
  CHECK(c.edges[1].queued == 1);
  CHECK(c.edges[1].senders[0].queued() == 2);  // without block 2, which is the group's
  CHECK(c.edges[1].senders[0].take(20'000).block == 0);
  CHECK(c.send() == 2);
  // Block 0 goes over no group any more: another loss of it is no fault of the network's copies.
  CHECK(c.edges[1].senders[0].find_lost(40'000, Duration::us(200)).of_group == 1);
}

TEST_CASE("what has come by the group although it went to others is not sent again") {
  Children c(3);
  Group::on_heard(c.edges[0], 5);
  Group::on_heard(c.edges[1], 5);
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

TEST_CASE("a member that hears nothing any more gets everything alone, until a new trial is heard") {
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
  Group::on_heard(c.edges[1], c.edges[1].member.newest_echo_us);
  c.open(1);
  CHECK_FALSE(c.is_member(1, 1));
  Group::on_heard(c.edges[1], c.clock_us + 1);
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

TEST_CASE("who is waited for too long gets its results alone for some rounds") {
  Children c(3);
  c.all_hear();
  c.open();
  c.open(1);
  const Instant start = Instant::from_ns(1'000'000'000);
  const Duration rtt = Duration::ms(1);
  CHECK_FALSE(Group::on_waited_for(c.edges[2], rtt, false, start));
  CHECK_FALSE(Group::on_waited_for(c.edges[2], rtt, false,
                                   start + kGroupPatience - Duration::us(1)));
  CHECK(c.is_member(2));
  CHECK(Group::on_waited_for(c.edges[2], rtt, false, start + kGroupPatience));
  CHECK_FALSE(c.is_member(2));
  CHECK_FALSE(c.is_member(2, 1));  // in every open round
  CHECK(c.is_member(1));
  for (std::uint32_t round = 0; round < kFirstGroupRest; ++round) {
    c.open();
    CHECK_FALSE(c.is_member(2));
  }
  c.open();
  CHECK(c.is_member(2));
  // It was not enough: now twice as long, and at once, because it is known to be slow.
  CHECK(Group::on_waited_for(c.edges[2], rtt, true, start));
  for (std::uint32_t round = 0; round < 2 * kFirstGroupRest; ++round) {
    c.open();
    CHECK_FALSE(c.is_member(2));
  }
  c.open();
  CHECK(c.is_member(2));
}

TEST_CASE("a long path has more patience") {
  Children c(2);
  c.all_hear();
  c.open();
  const Instant start = Instant::from_ns(1'000'000'000);
  const Duration rtt = Duration::ms(100);
  CHECK_FALSE(Group::on_waited_for(c.edges[0], rtt, false, start));
  CHECK_FALSE(Group::on_waited_for(c.edges[0], rtt, false, start + Duration::ms(399)));
  CHECK(Group::on_waited_for(c.edges[0], rtt, false, start + Duration::ms(400)));
}

TEST_CASE("a group is tried while some child does not hear it, more and more rarely") {
  Children c(2);
  CHECK(c.group.next_trial(c.edges) == Instant::never());  // there is no result
  c.open();
  c.offer(7);
  Instant now = Instant::from_ns(1'000'000'000);
  REQUIRE(c.group.next_trial(c.edges) <= now);
  const Group::Trial trial = c.group.trial(now);
  CHECK(trial.block == 7);
  CHECK(trial.slot == 0);
  CHECK(c.group.next_trial(c.edges) == Instant::never());  // each result is tried once
  Duration pause = kFirstGroupTrial;
  for (int n = 0; n < 12; ++n) {
    c.offer(8);
    CHECK(c.group.next_trial(c.edges) == now + pause);
    now = now + pause;
    (void)c.group.trial(now);
    pause = std::min(pause * 2, kMaxGroupTrial);
  }
  Group::on_heard(c.edges[0], 5);
  c.offer(9);
  CHECK(c.group.next_trial(c.edges) < Instant::never());
  Group::on_heard(c.edges[1], 5);
  CHECK(c.group.next_trial(c.edges) == Instant::never());
  // The round is over: its results are not tried any more.
  Children other(2);
  other.open();
  other.offer(1);
  other.group.stop(0);
  CHECK(other.group.next_trial(other.edges) == Instant::never());
}

TEST_CASE("blocks that no member needs any more do not go to the group") {
  Children c(3);
  c.all_hear();
  c.open();
  for (std::uint32_t b = 0; b < 10; ++b) c.offer(b);
  for (OutEdge& edge : c.edges)
    CHECK(Group::on_waited_for(edge, Duration::ms(1), true, Instant()));
  CHECK(c.send() == 0);
  CHECK(c.group.queued() == 0);
  CHECK(c.edges[0].queued == 1);
}
