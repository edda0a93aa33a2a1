// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <bit>
#include <cstdio>

#include "dataplane/port/dpdk/device.h"

namespace gradplane::port {
namespace {

// What a packet socket puts before a frame in its ring, and XDP before one in its chunk.
constexpr std::uint32_t kFrameSlackBytes = 256;
constexpr std::uint32_t kMinBufferBytes = 2048;
constexpr std::uint32_t kPageBytes = 4096;
// libxdp's fill and completion rings, which hold buffers beside the descriptors.
constexpr unsigned kXdpRingCount = 2 * 2048;
// Buffers that the owner of the port may hold at a time, in each direction.
constexpr unsigned kHeldCount = 1024;
// A buffer's own header and headroom, rounded up.
constexpr std::size_t kBufferOverheadBytes = 512;
constexpr std::size_t kDriverMemoryMb = 48;
// Where our buffers are no longer than the ring's, memif of DPDK 24.11 gives each segment of a
// frame a buffer of the ring, and the other end gets a frame in pieces. With longer ones it joins
// them.
constexpr std::uint16_t kMemifSpareBytes = 64;

std::string mac_text(const MacAddress& mac) {
  char text[18];
  std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", mac.bytes[0], mac.bytes[1],
                mac.bytes[2], mac.bytes[3], mac.bytes[4], mac.bytes[5]);
  return text;
}

std::string af_packet_arguments(const DpdkPortOptions& o, std::uint32_t buffer_bytes) {
  // qdisc_bypass=0: an operator's shaping of the interface holds for us too.
  return "iface=" + o.interface + ",qpairs=" + std::to_string(o.steering.queue_count) +
         ",qdisc_bypass=0,framesz=" + std::to_string(buffer_bytes) +
         ",blocksz=" + std::to_string(std::max(buffer_bytes, kPageBytes)) +
         ",framecnt=" + std::to_string(std::max(o.rx_descriptors, o.tx_descriptors));
}

std::string memif_arguments(const DpdkPortOptions& o, std::uint32_t buffer_bytes) {
  const auto ring_log2 = std::bit_width(unsigned{std::max(o.rx_descriptors, o.tx_descriptors)}) - 1;
  return std::string("role=") + (o.memif_role == MemifRole::kServer ? "server" : "client") +
         ",socket=" + o.memif_socket + ",socket-abstract=no,id=" + std::to_string(o.memif_id) +
         ",bsize=" + std::to_string(buffer_bytes) + ",rsize=" + std::to_string(ring_log2) +
         (o.mac ? ",mac=" + mac_text(*o.mac) : "");
}

/// Whether the driver copies what it sends before its burst ends, so that it may read lent memory.
/// The driver of a NIC gives buffers back when it needs their descriptors, which may be never.
bool copies_frames(DeviceKind kind) {
  return kind == DeviceKind::kAfPacket || kind == DeviceKind::kMemif;
}

}  // namespace

DevicePlan plan_device(const DpdkPortOptions& o, std::uint16_t mtu) {
  DevicePlan plan;
  plan.mtu = mtu;
  const std::uint32_t needed = mtu + kEthernetBytes + kVlanTagBytes + kFrameSlackBytes;
  plan.buffer_bytes = std::max(kMinBufferBytes, (needed + 63) / 64 * 64);
  plan.rx_buffer_count = o.rx_descriptors + kHeldCount;
  plan.tx_buffer_count = o.tx_descriptors + kHeldCount;
  switch (o.kind) {
    case DeviceKind::kAfPacket:
      // Frames tile blocks, and blocks are pages.
      plan.buffer_bytes = std::bit_ceil(plan.buffer_bytes);
      plan.driver = "net_af_packet";
      plan.arguments = af_packet_arguments(o, plan.buffer_bytes);
      break;
    case DeviceKind::kAfXdp:
      plan.driver = "net_af_xdp";
      plan.arguments = "iface=" + o.interface +
                       ",start_queue=0,queue_count=" + std::to_string(o.steering.queue_count) +
                       ",busy_budget=0";
      plan.rx_buffer_count += kXdpRingCount + o.tx_descriptors;
      break;
    case DeviceKind::kMemif:
      plan.driver = "net_memif";
      plan.tx_spare_bytes = kMemifSpareBytes;
      plan.arguments = memif_arguments(o, plan.buffer_bytes);
      break;
    case DeviceKind::kPci:
      // vmxnet3 fills a second ring of as many descriptors, for the rest of long frames.
      plan.rx_buffer_count += o.rx_descriptors;
      break;
  }
  plan.rx_buffer_count *= static_cast<unsigned>(o.steering.queue_count);
  plan.tx_buffer_count *= static_cast<unsigned>(o.steering.queue_count);
  if (copies_frames(o.kind)) plan.segment_buffer_count = 2 * plan.tx_buffer_count;
  const std::size_t pool_bytes = (std::size_t{plan.rx_buffer_count} + plan.tx_buffer_count) *
                                     (plan.buffer_bytes + kBufferOverheadBytes) +
                                 plan.segment_buffer_count * kBufferOverheadBytes;
  plan.memory_mb = kDriverMemoryMb + pool_bytes / (1024 * 1024);
  return plan;
}

}  // namespace gradplane::port
