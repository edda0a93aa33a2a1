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

/// The most datagrams that one receive() or transmit() call moves.
inline constexpr std::size_t kMaxBurst = 32;
/// After this many calls of PortQueue::tick() with the same time, nothing that was due then is
/// left.
inline constexpr std::size_t kTicksToTellAll = 128;

/// The class in which a datagram is sent. Control never waits behind data.
enum class TrafficClass : std::uint8_t { kControl = 0, kData = 1 };

/// A received datagram. `payload` is the UDP payload, and stays valid until release().
struct RxDatagram {
  std::span<const std::byte> payload;
  Endpoint source;
  std::uint16_t destination_udp_port = 0;
  bool congestion_experienced = false;  // the IP header carries ECN CE
  void* token = nullptr;                // belongs to the port; do not touch
};

/// A datagram to be sent. allocate() gives `buffer`; the caller fills it, then sets the rest.
struct TxDatagram {
  std::span<std::byte> buffer;     // the port's memory, at least mtu_payload_bytes()
  std::uint32_t length_bytes = 0;  // bytes of payload written into buffer
  /// A part of the payload that stays in the caller's memory, and its place: before the byte
  /// buffer[lent_at_bytes]. transmit() has read it before it returns, unless it is in memory that
  /// the port has by add_memory().
  std::span<const std::byte> lent = {};
  std::uint32_t lent_at_bytes = 0;
  Destination destination;
  std::uint16_t source_udp_port = 0;
  TrafficClass traffic_class = TrafficClass::kData;
  /// A tag in the payload covers all of it, so no UDP checksum is needed.
  bool is_tagged = false;
  void* token = nullptr;

  std::size_t payload_bytes() const { return length_bytes + lent.size(); }
  /// Copies the lent bytes to their place in the buffer, which must have room for payload_bytes().
  void copy_lent() noexcept;
};

/// Why a port dropped a frame or datagram. Each reason has a counter.
enum class PortDrop : std::uint8_t {
  kNotForUs,         // the Ethernet or IP address belongs to another station
  kNotUdp,           // neither ARP, ICMP echo, an IGMP query nor UDP
  kBadHeader,        // truncated, wrong version or length, options, fragment
  kBadChecksum,      // IPv4 or UDP checksum
  kWrongVlan,        // the VLAN tag is not ours, or is missing
  kNoNeighbour,      // the Ethernet address of the next hop is not known yet
  kTxFull,           // the device took no more
  kNoBuffer,         // the buffer pool is empty
  kTooLong,          // the payload is longer than mtu_payload_bytes()
  kAddressConflict,  // another station claims our address by ARP
  kNotJoined,        // the port is not in the group
  kQueueFull,        // another queue received it, and the right queue had no room for it
  kCount,
};
/// The reason as it appears in metrics: snake_case, never empty.
std::string_view port_drop_name(PortDrop drop);

/// Only the poll thread writes them; the control thread reads a copy made by the engine.
struct PortCounters {
  std::uint64_t rx_datagrams = 0;
  std::uint64_t rx_bytes = 0;
  std::uint64_t tx_datagrams = 0;
  std::uint64_t tx_bytes = 0;
  std::uint64_t tx_lent = 0;  // frames with lent bytes that were not copied
  // Dropped by the device before we saw them, if the device counts that.
  std::uint64_t rx_missed = 0;
  std::uint64_t handed_over = 0;   // frames that this queue received and gave to another one
  std::uint64_t igmp_version = 0;  // version of the last IGMP query; 0: there was none
  std::array<std::uint64_t, static_cast<std::size_t>(PortDrop::kCount)> drops{};
};

PortCounters& operator+=(PortCounters& sum, const PortCounters& other);

/// Which queue of a port gets a datagram: each queue has its own UDP port, counted from the first
/// one. Datagrams to any other UDP port go to queue 0, whose owner decides what to do with them.
struct Steering {
  std::size_t queue_count = 1;
  std::uint16_t first_udp_port = 47000;

  constexpr std::size_t queue_of(std::uint16_t udp_port) const {
    const std::size_t index = static_cast<std::uint16_t>(udp_port - first_udp_port);
    return index < queue_count ? index : 0;
  }
};
/// The most queues of a port.
inline constexpr std::size_t kMaxQueues = kMaxCores;
/// Checks whether a port can steer like this; the error says why not.
Status check(const Steering& steering);

/// One queue of a port, which receives and sends UDP datagrams in bursts. The port handles
/// everything below UDP: Ethernet, VLAN, ARP, IPv4, ICMP echo, IGMP, checksums, neighbours and
/// gateway. The caller handles everything above.
///
/// Threads: a queue belongs to the one poll thread that polls it. Different queues of a port may
/// have different poll threads. No call blocks, allocates, logs or throws.
///
/// Polling: whoever opens a port with several queues polls all of them, with receive() and tick(),
/// for as long as the port is in use. A queue that is not polled keeps the frames that other queues
/// hand over to it. Also, a memif client connects to its server only after every queue has seen
/// that there is no connection, because a DPDK device must not be restarted during a burst.
///
/// Buffers: a received payload belongs to the queue and is valid until release(). A TxDatagram from
/// allocate() must go to transmit() or discard() of the same queue; transmit() takes all datagrams,
/// sends those that the device takes, and drops and counts the rest.
class PortQueue {
 public:
  virtual ~PortQueue() = default;

  /// Fills `out` with datagrams for this queue, addressed to this port or to a group that it is in.
  /// Returns how many. Also answers ARP and ping.
  virtual std::size_t receive(std::span<RxDatagram> out) noexcept = 0;
  /// Returns received buffers.
  virtual void release(std::span<RxDatagram> datagrams) noexcept = 0;

  /// Takes a buffer to write a payload into. False if there is none (counted as kNoBuffer).
  virtual bool allocate(TxDatagram& out) noexcept = 0;
  /// Returns an allocated but unused buffer.
  virtual void discard(TxDatagram& datagram) noexcept = 0;
  /// Sends; returns how many the device took. A datagram to an unresolved neighbour is dropped,
  /// counted, and starts the resolution. A datagram to a group reaches every other port in that
  /// group.
  virtual std::size_t transmit(std::span<TxDatagram> datagrams) noexcept = 0;

  /// Does cold work: ARP retries, and ageing of the neighbours to which this queue sends. Queue 0
  /// also works for the whole port (announcements, the device's loss counters and connection), so
  /// it must always be polled. Call it about every millisecond with the poll clock.
  virtual void tick(Instant now) noexcept = 0;

  /// From this length on, lending bytes is faster than copying them into the buffer. SIZE_MAX:
  /// never. Any queue takes lent bytes of any length.
  virtual std::size_t lends_from_bytes() const noexcept { return SIZE_MAX; }

  /// Counters of this queue. Queue 0 also has what only the device counts.
  virtual const PortCounters& counters() const noexcept = 0;
};

/// A place in the network: an address, its queues, and the groups that it is in.
///
/// Threads: a port belongs to the control thread, except for its queues. Joining and leaving take
/// effect while the queues are polled; datagrams in flight may still arrive or miss.
class Port {
 public:
  virtual ~Port() = default;

  virtual std::size_t queue_count() const noexcept = 0;
  /// `index` must be less than queue_count(). The queue lives as long as the port.
  virtual PortQueue& queue(std::size_t index) noexcept = 0;

  /// From now on the queue of the group's UDP port receives datagrams to the group. Fails if it is
  /// no valid group, if the port is already in it, or if the port or its device cannot join.
  virtual Status join_group(const Group& group) = 0;
  /// No effect if the port is not in the group.
  virtual void leave_group(const Group& group) = 0;

  /// Lent bytes that lie in `memory` may be read at any time from now on, until remove_memory()
  /// returns true. A NIC needs this to read them where they lie; otherwise they are copied. Other
  /// ports do nothing. `memory` is whole pages, and stays mapped. On an Error, its bytes are
  /// copied.
  virtual Status add_memory(std::span<const std::byte> memory);
  /// No queue may lend bytes of `memory` any more. True once the port has read all of them; only
  /// then may the memory be unmapped. Otherwise call it again later: a NIC lets go of sent frames
  /// when it sends others. True for memory that was never added.
  virtual bool remove_memory(std::span<const std::byte> memory);

  /// The largest UDP payload that fits the link's MTU. Any thread.
  virtual std::size_t mtu_payload_bytes() const noexcept = 0;
  /// Any thread.
  virtual Ipv4 address() const noexcept = 0;

  /// The sum over the queues. Each queue's counters belong to its poll thread, so call it only if
  /// no other thread polls. A daemon adds up the copies that its engines make. For tests.
  PortCounters total_counters();
};

}  // namespace gradplane::port
