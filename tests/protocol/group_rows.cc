// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <cstdint>

#include "tests/protocol/packet_rows.h"

namespace gradplane::testing {
namespace {

using hop::Drop;
using Answer = Effect::Answer;

constexpr std::uint32_t kNow = TableNode::kRound;

}  // namespace

Rows group_rows(const TableNode& n) {
  const auto to_group = [&n](std::uint32_t block, std::uint32_t round = kNow) {
    return n.result(block, round).for_group(0);
  };
  return {
      {"of a block that we pushed", {}, to_group(0), {.received = 1, .landed = 1}},
      {"of a block that has come to us alone",
       {n.result(0)},
       to_group(0),
       dropped(Drop::kDuplicate, Answer::kAck)},
      {"before one to us alone",
       {to_group(0)},
       n.result(0),
       dropped(Drop::kDuplicate, Answer::kAck)},
      {"before our push", {}, to_group(4), dropped(Drop::kFutureRound)},
      {"of the round that ended",
       {},
       to_group(8, kNow - 1),
       dropped(Drop::kPastRound, Answer::kComplete)},
      {"from a child", {}, to_group(0).sender(2), dropped(Drop::kNotPeer)},
      {"from a stranger", {}, to_group(0).sender(4), dropped(Drop::kNotPeer)},
      {"in the tree of which we are the root",
       {},
       n.result(8).tree(1).sender(2).for_group(1),
       dropped(Drop::kNotPeer)},
      {"in a tree that the plan lacks", {}, to_group(0).tree(2), dropped(Drop::kNotPeer)},
      {"of another plan", {}, to_group(0).epoch(2), dropped(Drop::kWrongEpoch)},
      {"of a block of the other tree", {}, to_group(8), dropped(Drop::kBadGeometry)},
      {"of a smaller bucket", {}, to_group(0).round_elements(2047), dropped(Drop::kMismatch)},
      {"with the tag of another key", {}, to_group(0).key(kOtherKey), dropped(Drop::kBadTag)},
      {"with the tag of another tree's group",
       {},
       n.result(0).for_group(1),
       dropped(Drop::kBadTag)},
      {"with a tag for us alone",
       {},
       n.result(0).without_hop().receiver(TableNode::kSelf),
       dropped(Drop::kBadTag)},
      {"with a hop extension", {}, n.result(0).for_group(0).with_hop(), dropped(Drop::kBadTag)},
      {"with a changed payload",
       {},
       to_group(0).poke(kPayloadAt - wire::kHopBytes, 0xff),
       dropped(Drop::kBadTag)},
      {"with a number that came before",
       {to_group(0).number(70)},
       to_group(1).number(70),
       dropped(Drop::kReplayed)},
      {"with a number that only a packet to us had",
       {n.result(0).number(1'000'000)},
       to_group(1).number(1'000'000),
       {.received = 1, .landed = 1}},
      {"whose number is far beyond those of packets to us",
       {to_group(0).number(1'000'000)},
       n.result(1),
       {.received = 1, .landed = 1}},
      {"that ends in its header", {}, to_group(0).cut_to(39), dropped(Drop::kMalformed)},
  };
}

}  // namespace gradplane::testing
