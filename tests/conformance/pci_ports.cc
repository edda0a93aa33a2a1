// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "dataplane/port/dpdk/dpdk_port.h"
#include "tests/conformance/port_suite.h"

/// GP_PCI_CROSSES_PAGES says that a buffer of these NICs may cross any pages.
///
/// Two NICs with a cable or a hub between them. The environment has their PCI addresses:
/// GP_PCI_LEFT and GP_PCI_RIGHT, and GP_PCI_QUEUES_LEFT and GP_PCI_QUEUES_RIGHT for NICs with two
/// queues, which steer if GP_PCI_QUEUES_STEER is set. All are bound to vfio-pci.
namespace gradplane::conformance {
namespace {

constexpr int kSkipped = 77;
constexpr std::size_t kMemoryMb = 512;  // for the pair of ports and the pair with queues together
// A NIC frees a sent buffer only when it needs the buffer's descriptor again.
constexpr std::size_t kKeptCount = port::DpdkPortOptions{}.tx_descriptors;

std::unique_ptr<port::Port> open_or_exit(const char* variable, Ipv4 address,
                                         const port::Steering& steering) {
  port::DpdkPortOptions o;
  o.kind = port::DeviceKind::kPci;
  o.pci_address = std::getenv(variable);
  o.address = address;
  o.memory_mb = kMemoryMb;
  o.steering = steering;
  auto opened = port::open_dpdk_port(o);
  if (!opened) {
    std::fprintf(stderr, "%s\n", opened.error().message.c_str());
    std::exit(1);
  }
  return std::move(opened.value());
}

bool are_given(const char* left, const char* right) {
  return std::getenv(left) != nullptr && std::getenv(right) != nullptr;
}

}  // namespace

PortPair& ports() {
  if (!are_given("GP_PCI_LEFT", "GP_PCI_RIGHT")) {
    std::printf(
        "SKIP: the pci port needs two NICs bound to vfio-pci and a cable between them, named in "
        "GP_PCI_LEFT and GP_PCI_RIGHT; none is given (scripts/test vm emulates them)\n");
    std::exit(kSkipped);
  }
  static auto left = open_or_exit("GP_PCI_LEFT", Ipv4{0x0a4d0001}, {});
  static auto right = open_or_exit("GP_PCI_RIGHT", Ipv4{0x0a4d0002}, {});
  static PortPair pair{*left, *right, Ipv4{0x0a4d0063}, kKeptCount};
  return pair;
}

Result<PortPair*> ports_with_queues() {
  if (!are_given("GP_PCI_QUEUES_LEFT", "GP_PCI_QUEUES_RIGHT")) {
    return Error{"no NICs with two queues are named in GP_PCI_QUEUES_LEFT and _RIGHT"};
  }
  (void)ports();  // sets up the memory for all ports
  static auto left = open_or_exit("GP_PCI_QUEUES_LEFT", Ipv4{0x0a510001}, kSteering);
  static auto right = open_or_exit("GP_PCI_QUEUES_RIGHT", Ipv4{0x0a510002}, kSteering);
  static PortPair pair{*left, *right, Ipv4{0x0a510063}, kKeptCount,
                       std::getenv("GP_PCI_QUEUES_STEER") != nullptr};
  return &pair;
}

}  // namespace gradplane::conformance
