// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Blocks over auxiliary routes. The plan has two routes: 3, 1, 2, on which this node (1) relays,
// and 2, 3, 1, which ends here.
#include "dataplane/job/relay.h"
#include "tests/protocol/packet_rows.h"

namespace gradplane::testing {
namespace {

using hop::Drop;

constexpr std::uint64_t kNumber = 0x10'0000;
constexpr std::size_t kRouteNextAt =
    wire::kEnvelopeBytes + wire::kBlockHeaderBytes + wire::kHopBytes + wire::kRouteNextAt;

Rows refused_rows(const TableNode& n) {
  const PacketBuilder through = n.push(3, 0, 4).route({1, 2});
  const PacketBuilder to_us = n.push(2, 0, 4).route({3, 1}, 1);
  const auto from_3 = [&](std::vector<std::uint16_t> route, std::uint8_t next = 0) {
    return n.push(3, 0, 4).route(std::move(route), next);
  };
  return {
      {"of one node", {}, from_3({1}), dropped(Drop::kBadRoute)},
      {"that is too long", {}, from_3({1, 2, 0, 5}), dropped(Drop::kBadRoute)},
      {"that leads back to its sender", {}, from_3({1, 3}), dropped(Drop::kBadRoute)},
      {"that comes by twice", {}, from_3({1, 2, 1}), dropped(Drop::kBadRoute)},
      {"that visits another node twice", {}, from_3({1, 2, 2}), dropped(Drop::kBadRoute)},
      {"that is at its end already", {}, from_3({1, 2}, 2), dropped(Drop::kBadRoute)},
      {"that goes on to no node",
       {},
       n.push(2, 0, 4).route({3, 1, 0xffff}, 1),
       dropped(Drop::kBadRoute),
       3},
      {"that is at another node", {}, from_3({2, 1}), dropped(Drop::kBadRoute)},
      {"of our own", {}, n.push(2, 0, 4).sender(1).route({1, 2}), dropped(Drop::kBadRoute), 3},
      {"that skips a relay", {}, to_us, dropped(Drop::kBadRoute), 2},
      {"from another node than the one before", {}, through, dropped(Drop::kBadRoute), 2},
      {"from a stranger", {}, through, dropped(Drop::kNotPeer), 9},
      {"to a node that the plan has no route to", {}, from_3({1, 0}), dropped(Drop::kUnknownRoute)},
      {"of another sender than the plan's",
       {},
       n.push(0, 0, 4).sender(0).route({1, 2}),
       dropped(Drop::kUnknownRoute)},
      {"that the plan has the other way round",
       {},
       n.push(2, 0, 4).route({1, 3}),
       dropped(Drop::kUnknownRoute)},
      {"of another plan", {}, PacketBuilder(through).epoch(2), dropped(Drop::kWrongEpoch)},
      {"of another job", {}, PacketBuilder(through).job(2), dropped(Drop::kUnknownJob)},
      {"with a tag of another key",
       {},
       PacketBuilder(through).key(kOtherKey),
       dropped(Drop::kBadTag)},
      {"that was for another node", {}, PacketBuilder(through).receiver(2), dropped(Drop::kBadTag)},
      {"that somebody has moved on",
       {},
       PacketBuilder(through).poke(kRouteNextAt, 1),
       dropped(Drop::kBadTag)},
      {"cut short on the way",
       {},
       PacketBuilder(through).cut_to(kRouteNextAt + 20),
       dropped(Drop::kBadTag)},
      {"cut short by its sender",
       {},
       PacketBuilder(through).payload({}),
       dropped(Drop::kMalformed)},
      {"that came before",
       {PacketBuilder(through).number(kNumber)},
       PacketBuilder(through).number(kNumber),
       dropped(Drop::kReplayed)},
  };
}

}  // namespace

Rows route_rows(const TableNode& n) {
  const PacketBuilder through = n.push(3, 0, 4).route({1, 2});
  const PacketBuilder to_us = n.push(2, 0, 4).route({3, 1}, 1);
  const std::vector<PacketBuilder> many(job::RelayQueue::kSlots, through);
  Rows rows = {
      {"that is to be relayed", {}, through, {}},
      {"that ends here", {}, to_us, {.received = 1}, 3},
      {"when as many wait as may", many, through, dropped(Drop::kRelayFull)},
  };
  for (Row& row : refused_rows(n)) rows.push_back(std::move(row));
  return rows;
}

}  // namespace gradplane::testing
