// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/ports.h"

#include "control/daemon/placement.h"
#include "dataplane/port/loopback/loopback.h"
#ifdef GRADPLANE_DPDK
#include "dataplane/port/dpdk/dpdk_port.h"
#endif

namespace gradplane::daemon {
namespace {

#ifdef GRADPLANE_DPDK

port::DeviceKind device_kind(config::PortKind kind) {
  switch (kind) {
    case config::PortKind::kAfXdp:
      return port::DeviceKind::kAfXdp;
    case config::PortKind::kMemif:
      return port::DeviceKind::kMemif;
    case config::PortKind::kPci:
      return port::DeviceKind::kPci;
    case config::PortKind::kAfPacket:
    case config::PortKind::kLoopback:
      break;
  }
  return port::DeviceKind::kAfPacket;
}

port::HugePages huge_pages(config::HugePages wish) {
  switch (wish) {
    case config::HugePages::kNever:
      return port::HugePages::kNever;
    case config::HugePages::kRequire:
      return port::HugePages::kRequire;
    case config::HugePages::kAuto:
      break;
  }
  return port::HugePages::kAuto;
}

Result<std::unique_ptr<port::Port>> open_device(const config::NodeConfig& node,
                                                std::size_t block_bytes,
                                                const port::Steering& steering) {
  const config::PortConfig& wish = node.port;
  port::DpdkPortOptions options;
  options.kind = device_kind(wish.kind);
  options.interface = wish.interface;
  options.pci_address = wish.pci;
  options.memif_socket = wish.memif.socket;
  options.memif_id = wish.memif.id;
  options.memif_role = wish.memif.role == config::MemifRole::kServer ? port::MemifRole::kServer
                                                                     : port::MemifRole::kClient;
  options.address = node.address;
  options.prefix_length = node.prefix_length;
  options.gateway = wish.gateway;
  options.vlan = wish.vlan;
  options.mtu = static_cast<std::uint16_t>(wish.mtu_bytes);
  options.huge_pages = huge_pages(wish.huge_pages);
  options.memory_mb = wish.memory_bytes >> 20;
  // Some drivers are slower if they may get frames in several buffers, and memory that is lent to a
  // NIC is locked.
  options.zero_copy = wish.zero_copy && block_bytes >= port::kLendsFromBytes;
  options.steering = steering;
  return port::open_dpdk_port(options);
}

#else

Result<std::unique_ptr<port::Port>> open_device(const config::NodeConfig& node, std::size_t,
                                                const port::Steering&) {
  return Error{"port.kind " + std::string(config::name_of(node.port.kind)) +
               ": this gradplaned was built without DPDK; build it with -Ddpdk=enabled "
               "(package libdpdk-dev), or use port.kind: loopback"};
}

#endif

}  // namespace

Result<std::unique_ptr<port::Port>> open_port(const config::Config& config) {
  const config::NodeConfig& node = config.self_node();
  const port::Steering steering{.queue_count = core_count(config),
                                .first_udp_port = config.cluster.udp_port};
  if (node.port.kind == config::PortKind::kLoopback) {
    return port::open_lonely_loopback(node.address, {.steering = steering});
  }
  return open_device(node, config.block_bytes, steering);
}

std::string device_name(const config::PortConfig& port) {
  switch (port.kind) {
    case config::PortKind::kAfPacket:
    case config::PortKind::kAfXdp:
      return port.interface;
    case config::PortKind::kPci:
      return port.pci;
    case config::PortKind::kMemif:
      return port.memif.socket;
    case config::PortKind::kLoopback:
      break;
  }
  return "memory";
}

}  // namespace gradplane::daemon
