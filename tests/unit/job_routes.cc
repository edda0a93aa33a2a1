// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How a relay forwards the blocks of others. TableNode (node 1) relays from node 3 to node 2.
#include "dataplane/job/relay.h"
#include "dataplane/wire/seal.h"
#include "tests/support/catch.h"
#include "tests/support/table_node.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

/// Returns those packets of the node that other nodes have sent.
std::vector<Sent> relayed_by(TableNode& node) {
  std::vector<Sent> relayed;
  for (const Sent& packet : node.core().drain(node.now())) {
    if (packet.seen().sender != TableNode::kSelf) relayed.push_back(packet);
  }
  return relayed;
}

}  // namespace

TEST_CASE("a relay changes a packet's place on its route, its number and its tag") {
  TableNode node;
  const PacketBuilder packet = node.push(3, 0, 4).route({1, 2});
  const std::vector<std::byte> before = packet.bytes();
  node.deliver(packet);
  const std::vector<Sent> relayed = relayed_by(node);
  REQUIRE(relayed.size() == 1);
  CHECK(relayed[0].to == 2);
  CHECK(node.core().job().counters().blocks_relayed == 1);
  std::vector<std::byte> after = relayed[0].bytes;
  REQUIRE(after.size() == before.size());
  wire::Envelope envelope;
  REQUIRE(wire::read_envelope(after, envelope) == wire::ParseError::kNone);
  CHECK(envelope.sender == 3);
  const hop::Peer& next = node.core().job().peers()[1];
  REQUIRE(next.node == 2);
  const wire::PacketName name{TableNode::kSelf, wire::Receiver::node(2), next.packets_sent};
  CHECK(wire::open(after, *next.key, name));
  std::vector<std::byte> expected = before;
  wire::set_route_next(expected, envelope, 1);
  wire::seal(expected, wire::Gmac(TableNode::kKey), name);
  CHECK(after == expected);
}

TEST_CASE("relayed blocks and those of the node take turns") {
  TableNode node;
  for (int n = 0; n < 3; ++n) node.deliver(node.push(3, 0, 4).route({1, 2}));
  for (const std::uint32_t block : {4, 5, 6}) {
    node.deliver(node.push(2, 0, block));
    node.deliver(node.push(3, 0, block));
  }
  std::vector<bool> of_others;
  for (const Sent& packet : node.core().drain(node.now())) {
    const SeenPacket seen = packet.seen();
    if (wire::is_block(seen.type)) of_others.push_back(seen.sender != TableNode::kSelf);
  }
  CHECK(of_others == std::vector<bool>{true, false, true, false, true, false});
}

TEST_CASE("a relay has something to send as long as packets of others wait") {
  TableNode node;
  node.deliver(node.push(3, 0, 4).route({1, 2}));
  CHECK(node.core().job().next_data() <= node.now());
  (void)relayed_by(node);
  CHECK(node.core().job().next_data() > node.now());
}

TEST_CASE("a block that comes over a route is acked straight, with its path") {
  TableNode node;
  const std::uint32_t sent_us = hop::clock_us(node.now()) - 700;
  node.deliver(node.push(2, 0, 4).route({3, 1}, 1).timestamp_us(sent_us), 3);
  node.pass(hop::kMaxAckDelay);
  bool acked = false;
  for (const Sent& packet : node.core().drain(node.now())) {
    if (packet.seen().type != wire::PacketType::kPushAck) continue;
    wire::Envelope envelope;
    REQUIRE(wire::read_envelope(packet.bytes, envelope) == wire::ParseError::kNone);
    wire::AckPacket ack;
    REQUIRE(wire::read_ack(envelope, wire::open_unsealed(packet.bytes), ack) ==
            wire::ParseError::kNone);
    CHECK(packet.to == 2);
    CHECK(ack.header.path == 1);
    CHECK(ack.body.echo_us == sent_us);
    acked = true;
  }
  CHECK(acked);
}

TEST_CASE("a relay drops a packet that its port could receive but cannot send") {
  TableNode node;
  const PacketBuilder packet = node.push(3, 0, 4).route({1, 2});
  node.deliver(packet);
  node.deliver(node.push(3, 0, 4).route({1, 2}));
  CHECK(node.core().drain(node.now(), packet.bytes().size() - 1).empty());
  const hop::Counters& counters = node.core().job().counters();
  CHECK(counters.drops[static_cast<std::size_t>(hop::Drop::kRelayFull)] == 2);
  CHECK(counters.blocks_relayed == 0);
}

TEST_CASE("a queue of a relay holds so many packets, and none that is too long") {
  job::RelayQueue queue(8);
  const std::vector<std::byte> packet(8, std::byte{7});
  CHECK_FALSE(queue.push({}, std::vector<std::byte>(9), 2, 1));
  for (std::size_t n = 0; n < job::RelayQueue::kSlots; ++n) CHECK(queue.push({}, packet, 2, 1));
  CHECK_FALSE(queue.push({}, packet, 2, 1));
  queue.pop();
  CHECK(queue.push({}, std::vector<std::byte>(1, std::byte{9}), 3, 1));
  for (std::size_t n = 1; n < job::RelayQueue::kSlots; ++n) queue.pop();
  CHECK(queue.front().to == 3);
  CHECK(queue.bytes_of(queue.front()).front() == std::byte{9});
}
