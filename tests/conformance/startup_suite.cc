// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <string>

#include "tests/conformance/port_suite.h"
#include "tests/conformance/veth.h"
#include "tests/support/catch.h"

/// Every start-up failure names its cause and its remedy.
namespace gradplane::conformance {
namespace {

std::string failure(const port::DpdkPortOptions& options) {
  const auto opened = port::open_dpdk_port(options);
  return opened ? "it opened" : opened.error().message;
}

bool says(const std::string& message, const std::string& part) {
  UNSCOPED_INFO(message);
  return message.find(part) != std::string::npos;
}

TEST_CASE("start-up: an interface that does not exist, with those that do") {
  const std::string message = failure(veth_options("gpnone", Ipv4{0x0a500001}));
  CHECK(says(message, "gpnone does not exist"));
  CHECK(says(message, "gpa0"));
}

TEST_CASE("start-up: a name that would be more than a name") {
  CHECK(says(failure(veth_options("gpa0,qpairs=9", Ipv4{0x0a500001})), "not an interface name"));
}

TEST_CASE("start-up: an interface that is no Ethernet") {
  CHECK(says(failure(veth_options("lo", Ipv4{0x0a500001})), "not an Ethernet interface"));
}

TEST_CASE("start-up: an interface that a port of any process has") {
  (void)ports();
  const std::string message = failure(veth_options("gpa0", Ipv4{0x0a500001}));
  CHECK(says(message, "already the port of"));
  CHECK(says(message, "process"));
}

TEST_CASE("start-up: an MTU above the interface's, with the command that raises it") {
  port::DpdkPortOptions o = veth_options("gpk0", Ipv4{0x0a500001});
  o.mtu = 9000;
  CHECK(says(failure(o), "ip link set dev gpk0 mtu 9000"));
}

TEST_CASE("start-up: an address that the kernel has") {
  const InPeerNamespace there;
  const std::string message = failure(veth_options("gpk1", Ipv4{0x0a4e0002}));
  CHECK(says(message, "10.78.0.2 on interface gpk1"));
}

TEST_CASE("start-up: options out of range") {
  port::DpdkPortOptions o = veth_options("gpk0", Ipv4{0x0a500001});
  SECTION("gateway off the subnet") {
    o.gateway = Ipv4{0x0a510001};
    CHECK(says(failure(o), "not on the subnet"));
  }
  SECTION("VLAN") {
    o.vlan = 4095;
    CHECK(says(failure(o), "VLAN 4095"));
  }
  SECTION("descriptors") {
    o.rx_descriptors = 1000;
    CHECK(says(failure(o), "power of two"));
  }
  SECTION("address") {
    o.address = Ipv4{0xe0000001};
    CHECK(says(failure(o), "224.0.0.1 cannot be the address of a host"));
  }
  SECTION("memif socket") {
    o.kind = port::DeviceKind::kMemif;
    o.memif_socket = "/tmp/x,role=server";
    CHECK(says(failure(o), "cannot be a memif socket"));
  }
  SECTION("PCI address") {
    o.kind = port::DeviceKind::kPci;
    o.pci_address = "0000:00:00.0 --vdev=x";
    CHECK(says(failure(o), "not a PCI address"));
  }
}

}  // namespace
}  // namespace gradplane::conformance
