// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>

#include "dataplane/port/dpdk/device.h"
#include "dataplane/port/dpdk/frame.h"
#include "dataplane/port/dpdk/interface.h"
#include "dataplane/port/dpdk/memif_lock.h"
#include "dataplane/port/dpdk/neighbours.h"
#include "dataplane/port/port.h"

struct rte_mbuf;

namespace gradplane::port {

/// ARP questions that one tick sends at most; the others wait for the next.
inline constexpr std::size_t kMaxQuestionsPerTick = kMaxBurst;
/// We tell everybody our Ethernet address this often at the start (RFC 5227 wants two), and again
/// when somebody else claims our address, but no more often than the pause.
inline constexpr unsigned kAnnouncements = 2;
inline constexpr Duration kAnnouncePause = Duration::seconds(2);
inline constexpr Duration kDefendPause = Duration::seconds(10);
/// How often a device is asked for its losses and whether its peer is there.
inline constexpr Duration kDeviceCarePause = Duration::ms(500);

using PortLock = std::variant<DeviceLock, MemifLock>;

/// The port over a DPDK device: joins the device's bursts to the stack's pure parts.
class DevicePort final : public Port {
 public:
  /// `lock` keeps other processes off the device for as long as the port lives.
  DevicePort(const DpdkPortOptions& options, PortLock lock, std::unique_ptr<Device> device,
             std::uint16_t mtu);
  ~DevicePort() override;

  std::size_t receive(std::span<RxDatagram> out) noexcept override;
  void release(std::span<RxDatagram> datagrams) noexcept override;
  bool allocate(TxDatagram& out) noexcept override;
  void discard(TxDatagram& datagram) noexcept override;
  std::size_t transmit(std::span<TxDatagram> datagrams) noexcept override;
  void tick(Instant now) noexcept override;
  std::size_t mtu_payload_bytes() const noexcept override { return mtu_ - kIpUdpBytes; }
  Ipv4 address() const noexcept override { return us_.address; }
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

  bool take_frame(rte_mbuf* frame, RxDatagram& out, Batch& replies) noexcept;
  bool take_arp(rte_mbuf* frame, const ParsedFrame& parsed, Batch& replies) noexcept;
  rte_mbuf* frame_datagram(TxDatagram& datagram) noexcept;
  void send_questions() noexcept;
  void announce() noexcept;
  void care_for_device() noexcept;
  void send_arp(const ArpFrame& arp) noexcept;
  std::size_t send_datagrams(Batch& batch) noexcept;
  Sent flush(Batch& batch) noexcept;
  void drop(PortDrop reason) noexcept { ++counters_.drops[static_cast<std::size_t>(reason)]; }

  FrameFilter us_;
  std::uint16_t mtu_;
  PortLock lock_;
  std::unique_ptr<Device> device_;
  Neighbours neighbours_;
  PortCounters counters_;
  Instant now_;
  unsigned announcements_left_ = kAnnouncements;
  Instant next_announcement_;
  Instant next_defence_;
  Instant next_device_care_;
  bool may_be_held_back_ = false;
};

}  // namespace gradplane::port
