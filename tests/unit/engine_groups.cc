// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// What an engine sends to the group of a node's children, and what it receives from such a group.
#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include "dataplane/engine/addressing.h"
#include "dataplane/engine/local_plan.h"
#include "dataplane/port/group_address.h"
#include "tests/support/catch.h"
#include "tests/support/engine_host.h"

using namespace gradplane;
using namespace gradplane::engine;
using namespace gradplane::testing;

namespace {

constexpr std::uint32_t kJob = 5;

EngineOptions options_of(std::uint16_t self) {
  EngineOptions options;
  options.self = self;
  options.nodes = {{0x0a000001}, {0x0a000002}, {0x0a000003}, {0x0a000004}};
  options.udp_port = EngineHost::kFirstUdpPort;
  return options;
}

job::Node::Outgoing to_group(std::uint16_t sender, std::uint8_t tree) {
  job::Node::Outgoing packet;
  packet.group = GroupName{.job = kJob, .epoch = 1, .sender = sender, .tree = tree};
  return packet;
}

/// Sends one byte to the destination that the engine would use for `packet`.
void send(port::PortQueue& from, const job::Node::Outgoing& packet, const EngineOptions& options) {
  port::TxDatagram datagram;
  REQUIRE(from.allocate(datagram));
  datagram.buffer[0] = std::byte{1};
  datagram.length_bytes = 1;
  const Way way = way_of(packet, options);
  datagram.destination = way.destination;
  datagram.source_udp_port = way.source_udp_port;
  REQUIRE(from.transmit({&datagram, 1}) == 1);
}

}  // namespace

TEST_CASE("a packet goes to its group, and any other one to its node") {
  const EngineOptions options = options_of(3);
  job::Node::Outgoing packet;
  packet.node = 2;
  CHECK(way_of(packet, options).destination ==
        port::Destination(Endpoint{{0x0a000003}, options.udp_port}));
  CHECK(way_of(packet, options).source_udp_port == 49152 + 3 * 31 + 2);
  packet.group = GroupName{.job = 0x12345678, .epoch = 9, .sender = 3, .tree = 1};
  const Way way = way_of(packet, options);
  CHECK(way.destination == port::Destination(port::Group{{0xef475cb5}, options.udp_port}));
  CHECK(way.source_udp_port == 49152 + (3 * 31 + 0xef475cb5) % 8192);
  EngineOptions elsewhere = options;
  elsewhere.groups = {.first = {0xefc04000}, .prefix_length = 20};
  CHECK(way_of(packet, elsewhere).destination.endpoint().address == Ipv4{0xefc04cb5});
}

TEST_CASE("packets to different groups take different paths") {
  std::set<std::uint16_t> ports;
  for (std::uint8_t tree = 0; tree < 32; ++tree) {
    ports.insert(way_of(to_group(0, tree), options_of(0)).source_udp_port);
  }
  CHECK(ports.size() > 28);
}

TEST_CASE("what is for the children of a node reaches the engines that have joined, and no other") {
  const std::vector<Ipv4> nodes = options_of(0).nodes;
  const auto network = port::LoopbackNetwork::create(nodes, {}).value();
  std::vector<std::unique_ptr<port::Port>> ports;
  std::vector<std::unique_ptr<EngineHost>> hosts;
  for (std::uint16_t n = 0; n < nodes.size(); ++n) {
    ports.push_back(std::move(network->open(nodes[n]).value()));
    hosts.push_back(std::make_unique<EngineHost>(*ports[n], 0, n, nodes));
  }
  api::Plan plan = star_of(3);  // of nodes 0, 1 and 2, with root 0
  plan.epoch = 1;
  for (std::uint16_t n = 0; n < nodes.size(); ++n) {
    for (const GroupName& name : groups_of(plan, kJob, n)) {
      REQUIRE(ports[n]->join_group(
          port::group_of(name, options_of(n).groups, EngineHost::kFirstUdpPort)));
    }
  }
  send(ports[0]->queue(0), to_group(0, 0), options_of(0));
  Instant now = Instant::from_ns(1'000'000'000);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    hosts[n]->engine().poll_once(now);
    const auto snapshot = hosts[n]->snapshot(now);
    // The byte came from a known node and to the UDP port of the node. So the engine reads it and
    // drops it as malformed.
    const auto read = snapshot->node.drops[static_cast<std::size_t>(hop::Drop::kMalformed)];
    CHECK(read == (n == 1 || n == 2 ? 1 : 0));
    CHECK(snapshot->node.drops[static_cast<std::size_t>(hop::Drop::kUnknownNode)] == 0);
    CHECK(snapshot->port.rx_datagrams == read);
  }
}
