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
  port.interface = "eth1";
  port.mtu_bytes = 1500;
  port.has_default_mtu = true;
  CHECK(short_packets_note(port, 0).empty());
  CHECK(short_packets_note(port, 1500).empty());
  CHECK(short_packets_note(port, 9000) ==
        "port.mtu: packets have at most 1500 bytes, but eth1 takes 9000, and longer packets cost "
        "less processor time; if all nodes and switches take longer ones, set port.mtu to that "
        "length in the files of all nodes (at most 9000 here), or to 1500 to keep it and not be "
        "told again");
  const auto most = [&](std::size_t interface_mtu) {
    const std::string note = short_packets_note(port, interface_mtu);
    return note.substr(note.find("(at most "), note.find("), or") - note.find("(at most "));
  };
  CHECK(most(65536) == "(at most 9216 here");
  port.kind = gradplane::config::PortKind::kAfXdp;
  CHECK(most(9000) == "(at most 3400 here");
  port.mtu_bytes = 3400;
  CHECK(short_packets_note(port, 9000).empty());
}

TEST_CASE("an operator who has chosen the length of packets gets no note") {
  gradplane::config::PortConfig port;
  port.kind = gradplane::config::PortKind::kAfPacket;
  port.mtu_bytes = 1500;
  CHECK(short_packets_note(port, 9000).empty());
}

TEST_CASE("the kernel tells the MTU of an interface that is there") {
  CHECK(kernel_mtu("lo") >= 1500);
  CHECK(kernel_mtu("") == 0);
  CHECK(kernel_mtu("no-such-if") == 0);
  CHECK(kernel_mtu("a-name-that-is-too-long-for-an-interface") == 0);
}
