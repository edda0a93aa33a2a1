// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "dataplane/base/assert.h"
#include "dataplane/base/endpoint.h"

namespace gradplane::port {

/// In dotted-decimal notation: 10.0.0.1.
std::string to_text(Ipv4 address);

/// An IPv4 multicast address outside 224.0.0.0/24, because switches flood that range to every port.
constexpr bool is_group_address(Ipv4 address) {
  return address.value >> 28 == 0xe && address.value >> 8 != 0xe00000;
}

/// All ports that have joined one multicast address and one UDP port.
struct Group {
  Ipv4 address;
  std::uint16_t udp_port = 0;
  constexpr auto operator<=>(const Group&) const = default;
};
constexpr bool is_valid(const Group& group) {
  return is_group_address(group.address) && group.udp_port != 0;
}

/// The destination of a datagram: a node or a group. An Endpoint with a group's address does not
/// reach the group, so nobody sends to many by mistake.
class Destination {
 public:
  constexpr Destination() = default;
  constexpr Destination(Endpoint node) : endpoint_(node) {}
  constexpr Destination(const Group& group)
      : endpoint_{group.address, group.udp_port}, is_group_(true) {
    GP_ASSERT(is_valid(group));
  }

  constexpr bool is_group() const { return is_group_; }
  constexpr Group group() const { return {endpoint_.address, endpoint_.udp_port}; }
  /// The address and UDP port of the node or group, as in the headers of the datagram.
  constexpr const Endpoint& endpoint() const { return endpoint_; }
  constexpr bool operator==(const Destination&) const = default;

 private:
  Endpoint endpoint_;
  bool is_group_ = false;
};

}  // namespace gradplane::port
