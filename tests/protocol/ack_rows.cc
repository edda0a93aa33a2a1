// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/protocol/packet_rows.h"

namespace gradplane::testing {
namespace {

using hop::Drop;
constexpr std::uint32_t kNow = TableNode::kRound;
constexpr std::uint64_t kNumber = 3 * hop::kReplayWindow;
constexpr std::uint64_t kAll = ~std::uint64_t{0};

}  // namespace

// Bits 0-3 of the ack: blocks 0 and 1 of tree 0 left at first_sent_us(), and blocks 2 and 3 two
// milliseconds later.
Rows push_ack_rows(const TableNode& n) {
  const std::uint32_t early = n.first_sent_us();
  const std::uint32_t late = early + 2000;
  const PacketBuilder ack = n.push_ack().echo_us(early);
  const auto with = [&](std::uint32_t first, std::vector<std::uint64_t> words) {
    return PacketBuilder(ack).words(first, std::move(words));
  };
  return {
      {"of all that was sent", {}, with(0, {15}), {.landed = 4}},
      {"of nothing", {}, with(0, {}), {}},
      {"of a block in the middle", {}, with(0, {2}), {.landed = 1}},
      {"again", {with(0, {15})}, with(0, {15}), {}},
      {"older than the last", {with(0, {15})}, with(0, {1}), {}},
      {"of blocks that were never sent", {}, with(0, {0xf0}), {}},
      {"of blocks that are not in the round", {}, with(0, {kAll & ~std::uint64_t{0xff}}), {}},
      {"with words beyond the round", {}, with(0, {3, kAll, kAll}), {.landed = 2}},
      {"with words beyond the round only", {}, with(1, {kAll, kAll}), {.landed = 4}},
      {"with every word there can be",
       {},
       with(0, std::vector<std::uint64_t>(128, kAll)),
       {.landed = 4}},
      {"that begins after the last word there can be", {}, with(128, {}), {.landed = 4}},
      {"complete, although half was never sent",
       {},
       with(0, {}).flags(wire::kFlagComplete),
       {.landed = 4}},
      {"with a gap before a later block", {}, with(0, {4}).echo_us(late), {.landed = 3, .lost = 2}},
      {"that names the gap's blocks after all",
       {with(0, {4}).echo_us(late)},
       with(0, {7}).echo_us(late),
       {}},
      {"with an echo too early to prove a loss",
       {},
       with(0, {4}).echo_us(early + 100),
       {.landed = 1}},
      {"with an echo of the future", {}, with(0, {1}).echo_us(late + 10'000'000), {.landed = 1}},
      {"with an echo half the clock away",
       {},
       with(0, {1}).echo_us(early + 0x8000'0000),
       {.landed = 1}},
      {"without an echo", {}, with(0, {1}).echo_us(0), {.landed = 1}},
      {"held back for longer than it took",
       {},
       with(0, {1}).ack_delay_us(0xffff'ffff),
       {.landed = 1}},
      {"of the round that ended", {}, with(0, {15}).round(kNow - 1), {}},
      {"of a round that is not open", {}, with(0, {15}).round(kNow + 1), {}},
      {"of a round whose slot is taken", {}, with(0, {15}).round(kNow + 16), {}},
      {"from a child: the wrong direction", {}, with(0, {15}).sender(2), dropped(Drop::kNotPeer)},
      {"in the tree of which we are the root", {}, with(0, {15}).tree(1), dropped(Drop::kNotPeer)},
      {"in a tree that is not", {}, with(0, {15}).tree(2), dropped(Drop::kNotPeer)},
      {"from a node that is not in the job", {}, with(0, {15}).sender(9), dropped(Drop::kNotPeer)},
      {"of another plan", {}, with(0, {15}).epoch(0), dropped(Drop::kWrongEpoch)},
      {"of another job", {}, with(0, {15}).job(2), dropped(Drop::kUnknownJob)},
      {"with a tag of another key", {}, with(0, {15}).key(kOtherKey), dropped(Drop::kBadTag)},
      {"that was for another node", {}, with(0, {15}).receiver(3), dropped(Drop::kBadTag)},
      {"that came before, also when it is no news",
       {with(0, {15}).number(kNumber)},
       with(0, {15}).number(kNumber),
       dropped(Drop::kReplayed)},
      {"with a source route", {}, with(0, {15}).route({1}), dropped(Drop::kBadRoute)},
      {"of a route that we do not have", {}, with(0, {15}).path(1), dropped(Drop::kUnknownRoute)},
      {"of a group to which nobody pushes",
       {},
       with(0, {15}).path(hop::kGroupPath),
       dropped(Drop::kUnknownRoute)},
      {"of a path that no node has", {}, with(0, {15}).path(kMaxPaths), dropped(Drop::kMalformed)},
      {"with a changed word", {}, with(0, {1}).poke(kBitmapAt + 7, 15), dropped(Drop::kBadTag)},
  };
}

// Bits 0-3 of the ack: blocks 8 and 9 of tree 1 left at first_sent_us(), and blocks 10 and 11 two
// milliseconds later.
Rows result_ack_rows(const TableNode& n) {
  const std::uint32_t late = n.first_sent_us() + 2000;
  const PacketBuilder ack = n.result_ack().echo_us(n.first_sent_us());
  const auto with = [&](std::uint32_t first, std::vector<std::uint64_t> words) {
    return PacketBuilder(ack).words(first, std::move(words));
  };
  return {
      {"of all that was sent", {}, with(0, {15}), {.landed = 4}},
      {"again", {with(0, {15})}, with(0, {15}), {}},
      {"of results that are not known yet", {}, with(0, {0xf0}), {}},
      {"with a gap before a later result",
       {},
       with(0, {8}).echo_us(late),
       {.landed = 3, .lost = 2}},
      {"complete, although half is not known yet",
       {},
       with(0, {}).flags(wire::kFlagComplete),
       {.landed = 4}},
      {"that begins after the last word there can be", {}, with(128, {}), {.landed = 4}},
      {"of the round that ended", {}, with(0, {15}).round(kNow - 1), {}},
      {"from the parent: the wrong direction",
       {},
       with(0, {15}).sender(0).tree(0),
       dropped(Drop::kNotPeer)},
      {"from a child of another tree", {}, with(0, {15}).sender(3), dropped(Drop::kNotPeer)},
      {"in the other tree, where nothing is sent yet", {}, with(0, {15}).tree(0), {}},
      {"with a push ack's type",
       {},
       with(0, {15}).type(wire::PacketType::kPushAck),
       dropped(Drop::kNotPeer)},
      {"of another plan", {}, with(0, {15}).epoch(2), dropped(Drop::kWrongEpoch)},
      {"of a group that we do not have",
       {},
       with(0, {1}).path(hop::kGroupPath),
       dropped(Drop::kUnknownRoute)},
      {"with a tag of another key", {}, with(0, {15}).key(kOtherKey), dropped(Drop::kBadTag)},
      {"that was for another node", {}, with(0, {15}).receiver(3), dropped(Drop::kBadTag)},
  };
}

}  // namespace gradplane::testing
