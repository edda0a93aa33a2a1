// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/protocol/packet_rows.h"

namespace gradplane::testing {
namespace {

using hop::Drop;
using Answer = Effect::Answer;
constexpr std::uint32_t kNow = TableNode::kRound;
constexpr std::size_t kTimestampOffset = 16;
constexpr std::size_t kTagAt = kPayloadAt + kMinBlockBytes;
constexpr std::uint64_t kNumber = 3 * hop::kReplayWindow;

void append(Rows& rows, Rows more) {
  for (Row& row : more) rows.push_back(std::move(row));
}

/// Pushes of rounds before and after the open one, and too far ahead.
Rows push_round_rows(const TableNode& n) {
  return {
      {"of the round that ended",
       {},
       n.push(2, 0, 8, kNow - 1),
       dropped(Drop::kPastRound, Answer::kComplete)},
      {"of a round long ago",
       {},
       n.push(2, 0, 8, kNow - 160'001),
       dropped(Drop::kPastRound, Answer::kComplete)},
      {"half the numbers ago",
       {},
       n.push(2, 0, 4).round(kNow + 0x8000'0000),
       dropped(Drop::kPastRound, Answer::kComplete)},
      {"of a round that may open next", {}, n.push(2, 0, 8, kNow + 15), {.received = 1}},
      {"that is the last of its sender",
       {},
       n.push(2, 0, 4).flags(wire::kFlagCritical | wire::kFlagLast),
       {.received = 1, .answer = Answer::kAck}},
      {"of a round whose slot is taken",
       {},
       n.push(2, 0, 4, kNow + 16),
       dropped(Drop::kFutureRound)},
      {"of a round two turns of the slot ahead",
       {},
       n.push(2, 0, 8, kNow + 31),
       dropped(Drop::kFutureRound)},
      {"of a round far ahead",
       {},
       n.push(2, 0, 4, kNow + 0x7fff'fff0),
       dropped(Drop::kFutureRound)},
  };
}

Rows push_place_rows(const TableNode& n) {
  return {
      {"of an older plan", {}, n.push(2, 0, 4).epoch(0), dropped(Drop::kWrongEpoch)},
      {"of a newer plan", {}, n.push(2, 0, 4).epoch(2), dropped(Drop::kWrongEpoch)},
      {"of another job", {}, n.push(2, 0, 4).job(2), dropped(Drop::kUnknownJob)},
      {"a block of the other tree", {}, n.push(2, 1, 4), dropped(Drop::kBadGeometry)},
      {"in a tree where the sender is elsewhere", {}, n.push(3, 1, 12), dropped(Drop::kNotPeer)},
      {"in a tree that is not", {}, n.push(2, 0, 4).tree(2), dropped(Drop::kNotPeer)},
      {"in the last tree that a packet can name",
       {},
       n.push(2, 0, 4).tree(255),
       dropped(Drop::kNotPeer)},
      {"from the parent: the wrong direction",
       {},
       n.push(2, 0, 4).sender(0),
       dropped(Drop::kNotPeer)},
      {"from a node that is not in the job",
       {},
       n.push(2, 0, 4).sender(9),
       dropped(Drop::kNotPeer)},
      {"from the last node that a packet can name",
       {},
       n.push(2, 0, 4).sender(65535),
       dropped(Drop::kNotPeer)},
      {"under another node's name", {}, n.push(3, 0, 4), dropped(Drop::kUnknownNode), 2},
      {"under our own name", {}, n.push(2, 0, 4).sender(1), dropped(Drop::kUnknownNode)},
  };
}

Rows push_tag_rows(const TableNode& n) {
  PacketBuilder untagged = n.push(2, 0, 4);
  for (std::size_t i = 0; i < wire::kTagBytes; ++i) untagged.poke(kTagAt + i, 0);
  return {
      {"with a tag of another key", {}, n.push(2, 0, 4).key(kOtherKey), dropped(Drop::kBadTag)},
      {"that was for another node", {}, n.push(2, 0, 4).receiver(3), dropped(Drop::kBadTag)},
      {"with a changed payload",
       {},
       n.push(2, 0, 4).poke(kPayloadAt, 0xff),
       dropped(Drop::kBadTag)},
      {"with a changed header",
       {},
       n.push(2, 0, 4).poke(kTimestampOffset, 0xff),
       dropped(Drop::kBadTag)},
      {"with a changed number",
       {},
       n.push(2, 0, 4).poke(wire::kNumberAt + 3, 0xff),
       dropped(Drop::kBadTag)},
      {"without a tag", {}, untagged, dropped(Drop::kBadTag)},
      {"cut short on the way",
       {},
       n.push(2, 0, 4).cut_to(kTagAt + wire::kTagBytes - 1),
       dropped(Drop::kBadTag)},
  };
}

Rows push_number_rows(const TableNode& n) {
  const PacketBuilder before = n.push(2, 0, 4).number(kNumber);
  const PacketBuilder other = n.push(2, 0, 5);
  return {
      {"that came before", {before}, before, dropped(Drop::kReplayed)},
      {"with the number of another packet",
       {before},
       PacketBuilder(other).number(kNumber),
       dropped(Drop::kReplayed)},
      {"that as many others have overtaken as may",
       {before},
       PacketBuilder(other).number(kNumber - hop::kReplayWindow + 1),
       {.received = 1}},
      {"that one more has overtaken",
       {before},
       PacketBuilder(other).number(kNumber - hop::kReplayWindow),
       dropped(Drop::kReplayed)},
      {"with number 0", {}, PacketBuilder(other).number(0), dropped(Drop::kReplayed)},
      {"with the number of another sender's packet",
       {before},
       n.push(3, 0, 4).number(kNumber),
       {.received = 1}},
      {"after many that did not come",
       {},
       PacketBuilder(other).number(0x7fff'0000),
       {.received = 1}},
      {"of another half of the numbers",
       {},
       PacketBuilder(other).number(kNumber + (std::uint64_t{1} << 32)),
       dropped(Drop::kBadTag)},
      {"with a source route", {}, PacketBuilder(other).route({3, 4}), dropped(Drop::kBadRoute)},
      {"with a coverage set",
       {},
       PacketBuilder(other).coverage({3}),
       dropped(Drop::kBadContributors)},
  };
}

Rows push_content_rows(const TableNode& n) {
  const auto last = TableNode::kElements;
  return {
      {"of the block after the last", {}, n.push(2, 0, 4).index(16), dropped(Drop::kBadGeometry)},
      {"of the last block that a packet can name",
       {},
       n.push(2, 0, 4).index(0xffff),
       dropped(Drop::kBadGeometry)},
      {"one element short",
       {},
       n.push(2, 0, 4).payload(std::vector<std::byte>(127 * 4)),
       dropped(Drop::kBadGeometry)},
      {"one element long",
       {},
       n.push(2, 0, 4).payload(std::vector<std::byte>(129 * 4)),
       dropped(Drop::kBadGeometry)},
      {"of a bucket that fits no slot",
       {},
       n.push(2, 0, 4).round_elements(last + 1),
       dropped(Drop::kBadGeometry)},
      {"of a bucket whose block count overflows",
       {},
       n.push(2, 0, 4).round_elements(0xffff'ffff),
       dropped(Drop::kBadGeometry)},
      {"of a bucket that ends before the block",
       {},
       n.push(2, 0, 4).round_elements(512),
       dropped(Drop::kBadGeometry)},
      {"of a smaller bucket",
       {},
       n.push(2, 0, 4).round_elements(last - 1),
       dropped(Drop::kMismatch)},
      {"of another type of the same size",
       {},
       n.push(2, 0, 4).element_type(ElementType::kInt32),
       dropped(Drop::kMismatch)},
      {"of a broadcast, in a round that sums",
       {},
       n.push(2, 0, 4).operation(Operation::kBroadcast, 2),
       dropped(Drop::kMismatch)},
      {"of a broadcast from a rank that there is not",
       {},
       n.push(2, 0, 4).operation(Operation::kBroadcast, TableNode::kWorld),
       dropped(Drop::kBadGeometry)},
      {"of a reduce_scatter of elements that five ranks cannot share",
       {},
       n.push(3, 0, 4).operation(Operation::kReduceScatter),
       dropped(Drop::kBadGeometry)},
      {"that is empty, in a round that sums",
       {},
       n.push(2, 0, 4).flags(wire::kFlagPartial).contributors(0),
       dropped(Drop::kBadContributors)},
      {"that names too many ranks",
       {},
       n.push(2, 0, 4).contributors(2),
       dropped(Drop::kBadContributors)},
      {"that names too few ranks",
       {},
       n.push(3, 0, 4).contributors(1),
       dropped(Drop::kBadContributors)},
      {"that names every rank there can be",
       {},
       n.push(2, 0, 4).contributors(65535),
       dropped(Drop::kBadContributors)},
      {"with a set of a host that is not below its sender",
       {},
       n.push(3, 0, 4).bucket(1).contributors(1).flags(wire::kFlagPartial).coverage({0b0100}),
       dropped(Drop::kBadContributors)},
  };
}

Rows partial_result_rows(const TableNode& n) {
  return {
      {"that lacks a rank, and says so, of no bucket",
       {},
       n.result(0).contributors(4).flags(wire::kFlagPartial),
       dropped(Drop::kBadContributors)},
      {"that lacks a rank, and says so, without a set",
       {},
       n.result(0).bucket(1).contributors(4).flags(wire::kFlagPartial),
       dropped(Drop::kBadContributors)},
      {"with a set that fits, of no bucket",
       {},
       n.result(0).contributors(4).flags(wire::kFlagPartial).coverage({0b1011}),
       dropped(Drop::kBadContributors)},
      {"with a set that has fewer ranks than it says",
       {},
       n.result(0).bucket(1).contributors(4).flags(wire::kFlagPartial).coverage({0b0111}),
       dropped(Drop::kBadContributors)},
      {"with a set that has a host which is none",
       {},
       n.result(0).bucket(1).contributors(4).flags(wire::kFlagPartial).coverage({0b1'1011}),
       dropped(Drop::kBadContributors)},
      {"with a set of all hosts, called partial",
       {},
       n.result(0).bucket(1).contributors(5).flags(wire::kFlagPartial).coverage({0b1111}),
       dropped(Drop::kBadContributors)},
      {"with a set that fits, of another bucket",
       {},
       n.result(0).bucket(1).contributors(4).flags(wire::kFlagPartial).coverage({0b1011}),
       dropped(Drop::kMismatch)},
  };
}

}  // namespace

Rows push_rows(const TableNode& n) {
  Rows rows = {
      {"a block", {}, n.push(2, 0, 4), {.received = 1}},
      {"a block of two ranks", {}, n.push(3, 0, 4), {.received = 1}},
      {"a block where we are the root", {}, n.push(2, 1, 12), {.received = 1}},
      {"of the largest, in a round that sums",
       {},
       n.push(2, 0, 4).reduction(Reduction::kMax),
       dropped(Drop::kMismatch)},
      {"a block, again",
       {n.push(2, 0, 4)},
       n.push(2, 0, 4),
       dropped(Drop::kDuplicate, Answer::kAck)},
      {"a block that has gone up already",
       {},
       n.push(2, 0, 0),
       dropped(Drop::kDuplicate, Answer::kAck)},
      {"a block, again with other bytes",
       {n.push(2, 0, 4)},
       n.push(2, 0, 4).payload(std::vector<std::byte>(512)),
       dropped(Drop::kDuplicate, Answer::kAck)},
      {"a block from the other child", {n.push(2, 0, 4)}, n.push(3, 0, 4), {.received = 1}},
      {"the last block of a child",
       {n.push(2, 0, 4), n.push(2, 0, 5), n.push(2, 0, 6)},
       n.push(2, 0, 7),
       {.received = 1, .answer = Answer::kComplete}},
  };
  append(rows, push_round_rows(n));
  append(rows, push_place_rows(n));
  append(rows, push_tag_rows(n));
  append(rows, push_number_rows(n));
  append(rows, push_content_rows(n));
  return rows;
}

Rows result_rows(const TableNode& n) {
  Rows rows = {
      {"of a block that we pushed", {}, n.result(0), {.received = 1, .landed = 1}},
      {"of a block whose push is acked",
       {n.push_ack().words(0, {1})},
       n.result(0),
       {.received = 1}},
      {"again", {n.result(0)}, n.result(0), dropped(Drop::kDuplicate, Answer::kAck)},
      {"before its push", {}, n.result(4), dropped(Drop::kFutureRound)},
      {"after our own part only", {n.push(2, 0, 4)}, n.result(4), dropped(Drop::kFutureRound)},
      {"of a round that is not open", {}, n.result(8, kNow + 15), dropped(Drop::kFutureRound)},
      {"of a round whose slot is taken", {}, n.result(0, kNow + 16), dropped(Drop::kFutureRound)},
      {"of the round that ended",
       {},
       n.result(8, kNow - 1),
       dropped(Drop::kPastRound, Answer::kComplete)},
      {"from a child: the wrong direction", {}, n.result(0).sender(2), dropped(Drop::kNotPeer)},
      {"in the tree of which we are the root",
       {},
       n.result(8).tree(1).sender(2),
       dropped(Drop::kNotPeer)},
      {"of a block of the other tree", {}, n.result(8), dropped(Drop::kBadGeometry)},
      {"of the block after the last", {}, n.result(0).index(16), dropped(Drop::kBadGeometry)},
      {"of a smaller bucket", {}, n.result(0).round_elements(2047), dropped(Drop::kMismatch)},
      {"that lacks a rank", {}, n.result(0).contributors(4), dropped(Drop::kBadContributors)},
      {"of another bucket", {}, n.result(0).bucket(1), dropped(Drop::kMismatch)},
      {"of another operation",
       {},
       n.result(0).operation(Operation::kBroadcast, 2).contributors(1),
       dropped(Drop::kMismatch)},
      {"that is empty",
       {},
       n.result(0).operation(Operation::kBroadcast, 2).empty(),
       dropped(Drop::kBadContributors)},
      {"that names our subtree only",
       {},
       n.result(0).contributors(3),
       dropped(Drop::kBadContributors)},
      {"of another plan", {}, n.result(0).epoch(2), dropped(Drop::kWrongEpoch)},
      {"with a tag of another key", {}, n.result(0).key(kOtherKey), dropped(Drop::kBadTag)},
      {"that was for another node", {}, n.result(0).receiver(2), dropped(Drop::kBadTag)},
      {"with a changed payload",
       {},
       n.result(0).poke(kPayloadAt + 511, 0xff),
       dropped(Drop::kBadTag)},
  };
  append(rows, partial_result_rows(n));
  return rows;
}

}  // namespace gradplane::testing
