// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/port/dpdk/device.h"
#include "dataplane/port/dpdk/frame.h"
#include "dataplane/port/dpdk/group_reports.h"
#include "dataplane/port/dpdk/handover.h"
#include "dataplane/port/dpdk/lent_segments.h"
#include "dataplane/port/dpdk/neighbours.h"
#include "dataplane/port/port.h"

struct rte_mbuf;

namespace gradplane::port {

/// The most ARP requests that one tick sends; the others wait for the next tick.
inline constexpr std::size_t kMaxQuestionsPerTick = kMaxBurst;
/// Our Ethernet address is announced this often at the start (RFC 5227 wants two), and again when
/// another station claims our IP address, but not more often than kDefendPause.
inline constexpr unsigned kAnnouncements = 2;
inline constexpr Duration kAnnouncePause = Duration::seconds(2);
inline constexpr Duration kDefendPause = Duration::seconds(10);
/// How often a device's loss counters and connection are checked.
inline constexpr Duration kDeviceCarePause = Duration::ms(500);
/// The most IGMP version 2 reports, each about one group, that one tick sends. Of version 3 it
/// sends one.
inline constexpr std::size_t kMaxOldReportsPerTick = 8;
static_assert(kMaxGroups < kTicksToTellAll * kMaxOldReportsPerTick);

/// What the queues of a port share. They change only what is made for sharing: the device and the
/// handover.
struct DeviceShare {
  FrameFilter us;
  std::uint16_t mtu = 0;
  Steering steering;
  std::uint64_t report_seed = 0;  // seed of the pauses between reports about groups
  Device& device;
  Handover& handover;
  std::size_t payload_bytes() const { return mtu - kIpUdpBytes; }
};

/// A queue of a DPDK device. It connects the device's bursts to the pure parts of the stack. Each
/// queue has its own neighbour table, and copies ARP packets to the other queues. Only queue 0
/// answers IGMP queries; other queues hand them over.
class DeviceQueue final : public PortQueue {
 public:
  DeviceQueue(const DeviceShare& share, std::uint16_t index, const SubnetOptions& subnet);

  std::size_t receive(std::span<RxDatagram> out) noexcept override;
  void release(std::span<RxDatagram> datagrams) noexcept override;
  bool allocate(TxDatagram& out) noexcept override;
  void discard(TxDatagram& datagram) noexcept override;
  std::size_t transmit(std::span<TxDatagram> datagrams) noexcept override;
  void tick(Instant now) noexcept override;
  std::size_t lends_from_bytes() const noexcept override;
  const PortCounters& counters() const noexcept override { return counters_; }

 private:
  /// Frames collected for one burst to the device.
  struct Batch {
    std::array<rte_mbuf*, kMaxBurst> frames;
    std::size_t count = 0;
  };
  struct Sent {
    std::size_t count = 0;
    std::uint64_t frame_bytes = 0;
  };

  /// How a frame came to the queue.
  enum class Way : std::uint8_t { kDevice, kHandover };
  bool take_frame(rte_mbuf* frame, Way way, RxDatagram& out, Batch& replies) noexcept;
  bool take_arp(rte_mbuf* frame, Way way, const ParsedFrame& parsed, Batch& replies) noexcept;
  void hand_over(rte_mbuf* frame, std::size_t queue) noexcept;
  void tell_others(rte_mbuf* frame) noexcept;
  bool resolve(const Destination& to, MacAddress& mac) noexcept;
  rte_mbuf* frame_datagram(TxDatagram& datagram) noexcept;
  void send_questions() noexcept;
  void announce() noexcept;
  void care_for_device() noexcept;
  void report_groups() noexcept;
  void send_arp(const ArpFrame& arp) noexcept;
  template <typename Write>
  void send_frame(std::size_t max_bytes, const Write& write) noexcept;
  std::size_t send_datagrams(Batch& batch) noexcept;
  Sent flush(Batch& batch) noexcept;
  void drop(PortDrop reason) noexcept { ++counters_.drops[static_cast<std::size_t>(reason)]; }

  const DeviceShare& share_;
  const FrameFilter& us_;
  Device& device_;
  const std::uint16_t index_;
  const BufferPools& buffers_;
  LentSegments segments_;
  Neighbours neighbours_;
  GroupReports reports_;              // only used by queue 0
  std::uint32_t groups_version_ = 0;  // version of the group table that they are about
  PortCounters counters_;
  Instant now_;
  unsigned announcements_left_;
  Instant next_announcement_;
  Instant next_defence_;
  Instant next_device_care_;
  bool may_be_held_back_ = false;
};

}  // namespace gradplane::port
