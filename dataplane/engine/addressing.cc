// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/engine/addressing.h"

#include "dataplane/port/group_address.h"

namespace gradplane::engine {
namespace {

constexpr std::uint16_t kFirstSourcePort = 49152;
constexpr std::uint16_t kSourcePorts = 8192;

}  // namespace

Way way_of(const job::Node::Outgoing& packet, const EngineOptions& options) noexcept {
  Way way;
  std::uint32_t receiver = packet.node;
  if (packet.group) {
    const port::Group group = port::group_of(*packet.group, options.groups, options.udp_port);
    way.destination = group;
    receiver = group.address.value;
  } else {
    way.destination = Endpoint{options.nodes[packet.node], options.udp_port};
  }
  way.source_udp_port =
      static_cast<std::uint16_t>(kFirstSourcePort + (options.self * 31U + receiver) % kSourcePorts);
  return way;
}

}  // namespace gradplane::engine
