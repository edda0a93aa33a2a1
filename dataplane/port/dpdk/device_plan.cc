// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/dpdk/device_plan.h"

#include <algorithm>
#include <bit>
#include <cstdio>

#include "dataplane/port/dpdk/buffer_pools.h"

namespace gradplane::port {
namespace {

// Room for what a packet socket puts before a frame in its ring, and XDP before a frame in its
// chunk.
constexpr std::uint32_t kFrameSlackBytes = 256;
constexpr std::uint32_t kMinBufferBytes = 2048;
constexpr std::uint32_t kPageBytes = 4096;
// Entries of libxdp's fill and completion rings, which hold buffers in addition to the descriptors.
constexpr unsigned kXdpRingCount = 2 * 2048;
// The most buffers that the owner of the port holds at a time, in each direction.
constexpr unsigned kHeldCount = 1024;
// A buffer's own header and headroom, rounded up.
constexpr std::size_t kBufferOverheadBytes = 512;
// A pool itself: mostly a cache for each of the threads that DPDK can have.
constexpr std::size_t kPoolBytes = std::size_t{1100} * 1024;
constexpr std::size_t kPoolsOfQueue = 3;
constexpr std::size_t kDriverMemoryMb = 48;
// If our buffers are not longer than the ring's, memif of DPDK 24.11 puts each segment of a frame
// into its own ring buffer, and the other end gets the frame in pieces. If they are longer, it
// joins the segments.
constexpr std::uint16_t kMemifSpareBytes = 64;

std::string mac_text(const MacAddress& mac) {
  char text[18];
  std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", mac.bytes[0], mac.bytes[1],
                mac.bytes[2], mac.bytes[3], mac.bytes[4], mac.bytes[5]);
  return text;
}

std::string af_packet_arguments(const DpdkPortOptions& o, std::uint32_t buffer_bytes) {
  // qdisc_bypass=0: the operator's traffic shaping also applies to us.
  return "iface=" + o.interface + ",qpairs=" + std::to_string(o.steering.queue_count) +
         ",qdisc_bypass=0,framesz=" + std::to_string(buffer_bytes) +
         ",blocksz=" + std::to_string(std::max(buffer_bytes, kPageBytes)) +
         ",framecnt=" + std::to_string(std::max(o.rx_descriptors, o.tx_descriptors));
}

/// A memif's rings hold the frames themselves. Rings of long frames have twice the entries: then a
/// buffer has left the caches of the other core before it is written again, so cores that are far
/// apart do not slow each other down (docs/decisions/0032).
unsigned memif_ring_entries(const DpdkPortOptions& o, std::uint32_t buffer_bytes) {
  const unsigned entries = std::max(o.rx_descriptors, o.tx_descriptors);
  return buffer_bytes > kPageBytes ? 2 * entries : entries;
}
static_assert(2 * kMaxDescriptors <= 1 << 14, "the longest ring of a memif");

std::string memif_arguments(const DpdkPortOptions& o, std::uint32_t buffer_bytes) {
  const auto ring_log2 = std::bit_width(memif_ring_entries(o, buffer_bytes)) - 1;
  return std::string("role=") + (o.memif_role == MemifRole::kServer ? "server" : "client") +
         ",socket=" + o.memif_socket + ",socket-abstract=no,id=" + std::to_string(o.memif_id) +
         ",bsize=" + std::to_string(buffer_bytes) + ",rsize=" + std::to_string(ring_log2) +
         (o.mac ? ",mac=" + mac_text(*o.mac) : "");
}

/// Whether a frame may be several buffers. The driver of af_xdp takes one.
bool takes_segments(DeviceKind kind) {
  return kind != DeviceKind::kAfXdp;
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
      // A ring block consists of whole frames, and of whole pages.
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
      // Its rings have memory of their own.
      plan.rx_buffer_count = plan.tx_buffer_count = kHeldCount;
      plan.arguments = memif_arguments(o, plan.buffer_bytes);
      break;
    case DeviceKind::kPci:
      // vmxnet3 fills a second ring with the same number of descriptors, for the rest of long
      // frames.
      plan.rx_buffer_count += o.rx_descriptors;
      break;
  }
  const auto queues = static_cast<unsigned>(o.steering.queue_count);
  plan.rx_buffer_count += (queues - 1) * kMaxCachedBuffers;
  if (o.zero_copy && takes_segments(o.kind)) plan.segment_buffer_count = 2 * plan.tx_buffer_count;
  plan.reads_late = o.kind == DeviceKind::kPci;
  // A frame with lent bytes takes two. The frames of all queues count as one number.
  if (plan.reads_late)
    plan.segment_buffer_count = std::min(plan.segment_buffer_count, 2 * kMaxLateFrames / queues);
  const std::size_t pool_bytes = (std::size_t{plan.rx_buffer_count} + plan.tx_buffer_count) *
                                     (plan.buffer_bytes + kBufferOverheadBytes) +
                                 plan.segment_buffer_count * kBufferOverheadBytes +
                                 kPoolsOfQueue * kPoolBytes;
  plan.memory_mb = kDriverMemoryMb + queues * pool_bytes / (1024 * 1024);
  return plan;
}

}  // namespace gradplane::port
