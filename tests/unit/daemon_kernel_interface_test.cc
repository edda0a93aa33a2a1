// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/kernel_interface.h"

#include "tests/support/catch.h"

using namespace gradplane::daemon;

TEST_CASE("a port on which the kernel has an address too brings a warning") {
  CHECK(kernel_address_warning("eth1", {}).empty());
  const std::string warning = kernel_address_warning("eth1", {"192.0.2.1", "192.0.2.9"});
  CHECK(warning.find("the kernel has the address 192.0.2.1, 192.0.2.9 on eth1") !=
        std::string::npos);
  CHECK(warning.find("give gradplane an interface of its own") != std::string::npos);
}

TEST_CASE("an interface that is not there has no addresses") {
  CHECK(kernel_addresses("").empty());
  CHECK(kernel_addresses("no-such-if").empty());
}

TEST_CASE("an interface that takes longer packets than the port sends brings a note") {
  gradplane::config::PortConfig port;
  port.kind = gradplane::config::PortKind::kAfPacket;
  port.mtu_bytes = 1500;
  CHECK(short_packets_note(port, 0).empty());
  CHECK(short_packets_note(port, 1500).empty());
  CHECK(short_packets_note(port, 9000).ends_with("set port.mtu: 9000"));
  CHECK(short_packets_note(port, 65536).ends_with("set port.mtu: 9216"));
  port.kind = gradplane::config::PortKind::kAfXdp;
  CHECK(short_packets_note(port, 9000).ends_with("set port.mtu: 3400"));
  port.mtu_bytes = 3400;
  CHECK(short_packets_note(port, 9000).empty());
}

TEST_CASE("the kernel tells the MTU of an interface that is there") {
  CHECK(kernel_mtu("lo") >= 1500);
  CHECK(kernel_mtu("") == 0);
  CHECK(kernel_mtu("no-such-if") == 0);
  CHECK(kernel_mtu("a-name-that-is-too-long-for-an-interface") == 0);
}
