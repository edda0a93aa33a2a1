// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "dataplane/base/endpoint.h"
#include "dataplane/base/result.h"
#include "dataplane/base/time.h"
#include "dataplane/model/core_part.h"
#include "dataplane/model/limits.h"
#include "dataplane/port/destination.h"

namespace gradplane::port {

/// Datagrams that one receive() or transmit() call moves at most.
inline constexpr std::size_t kMaxBurst = 32;
/// After so many calls of PortQueue::tick() at one time, nothing is left that was due then.
inline constexpr std::size_t kTicksToTellAll = 128;

/// How a datagram leaves. Control never waits behind data.
enum class TrafficClass : std::uint8_t { kControl = 0, kData = 1 };

/// A received datagram. `payload` is the UDP payload, and stays valid until release().
struct RxDatagram {
  std::span<const std::byte> payload;
  Endpoint source;
  std::uint16_t destination_udp_port = 0;
  bool congestion_experienced = false;  // the IP header carried ECN CE
  void* token = nullptr;                // the port's own; do not touch
};

/// A datagram to be sent. allocate() gives `buffer`; the caller fills it, then sets the rest.
struct TxDatagram {
  std::span<std::byte>
      buffer;  // the port's memory, at least kMaxDatagramBytes or mtu_payload_bytes()
  std::uint32_t length_bytes = 0;  // of the payload written into buffer
  /// A part of the payload that stays in the caller's memory, and its place: before the byte
  /// buffer[lent_at_bytes]. transmit() has read it when it returns.
  std::span<const std::byte> lent = {};
  std::uint32_t lent_at_bytes = 0;
  Destination destination;
  std::uint16_t source_udp_port = 0;
  TrafficClass traffic_class = TrafficClass::kData;
  /// A tag in the payload covers all of it, so nobody has to compute a UDP checksum.
  bool is_tagged = false;
  void* token = nullptr;

  std::size_t payload_bytes() const { return length_bytes + lent.size(); }
  /// Copies what is lent to its place in the buffer, which has room for payload_bytes().
  void copy_lent() noexcept;
};

/// Why a port dropped something. One counter for each.
enum class PortDrop : std::uint8_t {
  kNotForUs,         // Ethernet or IP address of somebody else
  kNotUdp,           // neither ARP, ICMP echo, a question about groups nor UDP
  kBadHeader,        // truncated, wrong version or length, options, fragment
  kBadChecksum,      // IPv4 or UDP checksum
  kWrongVlan,        // a tag we do not carry, or none where one is due
  kNoNeighbour,      // the next hop has no Ethernet address yet; the datagram was dropped
  kTxFull,           // the device took no more
  kNoBuffer,         // the buffer pool is empty
  kTooLong,          // a payload longer than mtu_payload_bytes()
  kAddressConflict,  // another station says in ARP that it has our address
  kNotJoined,        // to a group that the port is not in
  kQueueFull,        // it came by another queue of the port, and its own had no room for it
  kCount,
};
/// The reason as it appears in metrics: snake_case, never empty.
std::string_view port_drop_name(PortDrop drop);

/// Written by the poll thread alone; control reads a copy made by the engine.
struct PortCounters {
  std::uint64_t rx_datagrams = 0;
  std::uint64_t rx_bytes = 0;
  std::uint64_t tx_datagrams = 0;
  std::uint64_t tx_bytes = 0;
  std::uint64_t rx_missed = 0;     // dropped by the device before we saw them, where it tells
  std::uint64_t handed_over = 0;   // frames that came by this queue and were given to another
  std::uint64_t igmp_version = 0;  // spoken by who last asked who is in which group; 0: nobody has
  std::array<std::uint64_t, static_cast<std::size_t>(PortDrop::kCount)> drops{};
};

PortCounters& operator+=(PortCounters& sum, const PortCounters& other);

/// Which queue of a port gets a datagram: each queue has a UDP port of its own, counted from the
/// first one. What comes to another UDP port is for queue 0, whose owner judges it.
struct Steering {
  std::size_t queue_count = 1;
  std::uint16_t first_udp_port = 47000;

  constexpr std::size_t queue_of(std::uint16_t udp_port) const {
    const std::size_t index = static_cast<std::uint16_t>(udp_port - first_udp_port);
    return index < queue_count ? index : 0;
  }
};
/// Queues of a port at most.
inline constexpr std::size_t kMaxQueues = kMaxCores;
/// Why a port cannot steer like this; a Status that is good when it can.
Status check(const Steering& steering);

/// One queue of a port, in both directions: UDP datagrams in bursts. Everything below UDP
/// (Ethernet, VLAN, ARP, IPv4, ICMP echo, IGMP, checksums, neighbours, gateway) is the port's
/// business; everything above is the caller's.
///
/// Threads: all of it belongs to the one poll thread that polls the queue. Queues of one port may
/// be polled by threads of their own. No call blocks, allocates, logs or throws.
///
/// Polling: whoever opens a port with several queues polls all of them, with receive() and tick(),
/// for as long as the port is in use. A queue that nobody polls keeps the frames that other queues
/// hand over to it. And a memif client connects to its server, at first and again, only after every
/// queue has seen that the connection is gone: DPDK's device must not be restarted during a burst.
///
/// Buffers: a received payload belongs to the queue and is valid until release(). A TxDatagram from
/// allocate() must go to transmit() or discard() of the same queue; transmit() takes all of them,
/// sends what the device takes, drops and counts the rest.
class PortQueue {
 public:
  virtual ~PortQueue() = default;

  /// Fills `out` with datagrams for this queue, to us or to a group that the port is in; returns
  /// how many. Answers ARP and ping on the way.
  virtual std::size_t receive(std::span<RxDatagram> out) noexcept = 0;
  /// Gives received buffers back.
  virtual void release(std::span<RxDatagram> datagrams) noexcept = 0;

  /// A buffer to write a payload into. False when there is none (counted as kNoBuffer).
  virtual bool allocate(TxDatagram& out) noexcept = 0;
  /// Gives an allocated but unused buffer back.
  virtual void discard(TxDatagram& datagram) noexcept = 0;
  /// Sends; returns how many the device took. A datagram to an unresolved neighbour is dropped,
  /// counted, and starts the resolution. One to a group reaches each other port that is in it.
  virtual std::size_t transmit(std::span<TxDatagram> datagrams) noexcept = 0;

  /// Cold work: ARP retries and ageing of the neighbours that this queue sends to. Queue 0 also
  /// does what the whole port needs (announcements, the device's losses and its connection), so it
  /// must always be polled. Called about every millisecond with the poll clock.
  virtual void tick(Instant now) noexcept = 0;

  /// From this length on, bytes that are lent leave sooner than bytes that the caller copies into
  /// the buffer. SIZE_MAX: never. Any queue takes lent bytes of any length.
  virtual std::size_t lends_from_bytes() const noexcept { return SIZE_MAX; }

  /// Of this queue alone. What only the device counts is with queue 0.
  virtual const PortCounters& counters() const noexcept = 0;
};

/// A place in the network: an address, its queues, and the groups that it is in.
///
/// Threads: it is the control thread's, but for what its queues do. Joining and leaving take effect
/// while the queues are polled, and say nothing of datagrams that are on their way.
class Port {
 public:
  virtual ~Port() = default;

  virtual std::size_t queue_count() const noexcept = 0;
  /// `index` is less than queue_count(). The queue lives as long as the port.
  virtual PortQueue& queue(std::size_t index) noexcept = 0;

  /// From now on datagrams to the group are received, by the queue of its UDP port. Fails on what
  /// is no group, on one that the port is in already, or when the port or its device cannot.
  virtual Status join_group(const Group& group) = 0;
  /// No effect when the port is not in the group.
  virtual void leave_group(const Group& group) = 0;

  /// The largest UDP payload that fits the link's MTU. Any thread.
  virtual std::size_t mtu_payload_bytes() const noexcept = 0;
  /// Any thread.
  virtual Ipv4 address() const noexcept = 0;

  /// The sum over the queues. Each queue's counters are its poll thread's: only where no other
  /// thread polls meanwhile. A daemon adds up the copies that its engines make.
  PortCounters total_counters();
};

}  // namespace gradplane::port
