// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/conformance/port_suite.h"
#include "tests/conformance/veth.h"

namespace gradplane::conformance {

PortPair& ports() {
  static auto left = open_or_exit(veth_options("gpa0", Ipv4{0x0a4d0001}));
  static auto right = [] {
    const InPeerNamespace there;
    return open_or_exit(veth_options("gpb0", Ipv4{0x0a4d0002}));
  }();
  static PortPair pair{*left, *right, Ipv4{0x0a4d0063}};
  return pair;
}

Result<PortPair*> ports_with_queues() {
  const auto options = [](const char* interface, Ipv4 address) {
    port::DpdkPortOptions o = veth_options(interface, address);
    o.steering = kSteering;
    return o;
  };
  if (kind_under_test() == port::DeviceKind::kAfXdp) {
    return Error{"a veth has one queue for DPDK's af_xdp driver, however many the kernel gives it"};
  }
  static auto left = open_or_exit(options("gpq0", Ipv4{0x0a510001}));
  static auto right = [&] {
    const InPeerNamespace there;
    return open_or_exit(options("gpq1", Ipv4{0x0a510002}));
  }();
  static PortPair pair{*left, *right, Ipv4{0x0a510063}};
  return &pair;
}

}  // namespace gradplane::conformance
