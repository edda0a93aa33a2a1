// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "dataplane/base/endpoint.h"
#include "dataplane/base/result.h"
#include "dataplane/port/dpdk/frame.h"
#include "dataplane/port/port.h"

namespace gradplane::port {

enum class DeviceKind : std::uint8_t { kAfPacket, kAfXdp, kMemif, kPci };
enum class HugePages : std::uint8_t { kAuto, kNever, kRequire };
enum class MemifRole : std::uint8_t { kServer, kClient };

inline constexpr std::uint16_t kMinMtu = 576;
inline constexpr std::uint16_t kMaxMtu = 9216;
static_assert(kMaxGroupReportBytes <= kEthernetBytes + kVlanTagBytes + kMinMtu);
inline constexpr std::uint16_t kDefaultMtu = 1500;
inline constexpr std::uint16_t kMinDescriptors = 64;
inline constexpr std::uint16_t kMaxDescriptors = 8192;
inline constexpr std::size_t kMaxMemoryMb = 65536;
/// Devices read payloads of this length and longer where they lie. To copy shorter ones takes less
/// time than two more buffers and a tag over two pieces (docs/decisions/0046-lent-payloads.md).
inline constexpr std::size_t kLendsFromBytes = 4096;
/// The most pieces of memory that a port of kind kPci has by Port::add_memory().
inline constexpr std::size_t kMaxDmaRegions = 64;

/// What a port on a real device needs to know. Plain values: the configuration reader fills them,
/// and open_dpdk_port() checks them.
struct DpdkPortOptions {
  DeviceKind kind = DeviceKind::kAfPacket;
  /// af_packet, af_xdp: the kernel interface. Only this port may use it.
  std::string interface;
  /// pci: the address of a device that is bound to vfio-pci, as 0000:3b:00.0.
  std::string pci_address;

  /// memif: both ends name the same socket and id, and one of them is the server.
  std::string memif_socket;
  std::uint32_t memif_id = 0;
  MemifRole memif_role = MemifRole::kServer;

  std::optional<MacAddress> mac;  // none: use the device's own
  Ipv4 address;                   // must not be an address of the kernel
  std::uint8_t prefix_length = 24;
  std::optional<Ipv4> gateway;
  std::optional<std::uint16_t> vlan;
  /// The MTU of IP packets, in bytes; 0: that of the interface, or kDefaultMtu if there is none.
  std::uint16_t mtu = 0;

  HugePages huge_pages = HugePages::kAuto;
  /// Memory for all ports of the process, in MiB; 0: as much as this port needs. The first port
  /// that is opened sets it for the process.
  std::size_t memory_mb = 0;
  /// The device may read lent bytes where they lie, if it can.
  bool zero_copy = true;
  std::uint16_t rx_descriptors = 1024;
  std::uint16_t tx_descriptors = 1024;
  /// Each queue of the port is a queue of the device, with its own descriptors and buffers. A NIC
  /// (pci) with RSS over UDP gives each queue the frames for its UDP port. Other devices spread
  /// frames as they like; a queue that gets a frame for another one hands it over.
  Steering steering = {};
};

/// Opens the device and returns a port that answers ARP and ping as `address`. The first call
/// starts DPDK's EAL for the process. On failure the error names the cause and what to do about it.
/// The interface is brought up if it is down. Control thread. The network namespace is that of the
/// calling thread.
///
/// Threads: a poll thread registers itself with DPDK when it first calls a queue.
Result<std::unique_ptr<Port>> open_dpdk_port(const DpdkPortOptions& options);

}  // namespace gradplane::port
