// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <compare>
#include <cstdint>

namespace gradplane {

/// An IPv4 address as a number: 10.0.0.1 is 0x0a000001.
struct Ipv4 {
  std::uint32_t value = 0;
  constexpr auto operator<=>(const Ipv4&) const = default;
};

/// The address and UDP port of a datagram's source or destination.
struct Endpoint {
  Ipv4 address;
  std::uint16_t udp_port = 0;
  constexpr auto operator<=>(const Endpoint&) const = default;
};

}  // namespace gradplane
