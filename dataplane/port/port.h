// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "dataplane/base/endpoint.h"
#include "dataplane/base/time.h"
#include "dataplane/model/limits.h"

namespace gradplane::port {

/// Datagrams that one receive() or transmit() call moves at most.
inline constexpr std::size_t kMaxBurst = 32;

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
  Endpoint destination;
  std::uint16_t source_udp_port = 0;
  TrafficClass traffic_class = TrafficClass::kData;
  void* token = nullptr;
};

/// Why a port dropped something. One counter for each.
enum class PortDrop : std::uint8_t {
  kNotForUs,         // Ethernet or IP address of somebody else
  kNotUdp,           // neither ARP, ICMP echo nor UDP
  kBadHeader,        // truncated, wrong version or length, options, fragment
  kBadChecksum,      // IPv4 or UDP checksum
  kWrongVlan,        // a tag we do not carry, or none where one is due
  kNoNeighbour,      // the next hop has no Ethernet address yet; the datagram was dropped
  kTxFull,           // the device took no more
  kNoBuffer,         // the buffer pool is empty
  kTooLong,          // a payload longer than mtu_payload_bytes()
  kAddressConflict,  // another station says in ARP that it has our address
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
  std::uint64_t rx_missed = 0;  // dropped by the device before we saw them, where it tells
  std::array<std::uint64_t, static_cast<std::size_t>(PortDrop::kCount)> drops{};
};

/// UDP datagrams in bursts. Everything below UDP (Ethernet, VLAN, ARP, IPv4, ICMP echo, checksums,
/// neighbours, gateway) is the port's business; everything above is the caller's.
///
/// Threads: construction and destruction on the control thread; every other call on the one poll
/// thread that owns the port. No call blocks, allocates, logs or throws.
///
/// Buffers: a received payload belongs to the port and is valid until release(). A TxDatagram from
/// allocate() must go to transmit() or discard(); transmit() takes all of them, sends what the
/// device takes, drops and counts the rest.
class Port {
 public:
  virtual ~Port() = default;

  /// Fills `out` with datagrams addressed to us; returns how many. Answers ARP and ping on the way.
  virtual std::size_t receive(std::span<RxDatagram> out) noexcept = 0;
  /// Gives received buffers back.
  virtual void release(std::span<RxDatagram> datagrams) noexcept = 0;

  /// A buffer to write a payload into. False when there is none (counted as kNoBuffer).
  virtual bool allocate(TxDatagram& out) noexcept = 0;
  /// Gives an allocated but unused buffer back.
  virtual void discard(TxDatagram& datagram) noexcept = 0;
  /// Sends; returns how many the device took. A datagram to an unresolved neighbour is dropped,
  /// counted, and starts the resolution.
  virtual std::size_t transmit(std::span<TxDatagram> datagrams) noexcept = 0;

  /// Cold work: ARP retries and ageing. Called about every millisecond with the poll clock.
  virtual void tick(Instant now) noexcept = 0;

  /// The largest UDP payload that fits the link's MTU.
  virtual std::size_t mtu_payload_bytes() const noexcept = 0;
  virtual Ipv4 address() const noexcept = 0;
  virtual const PortCounters& counters() const noexcept = 0;
};

}  // namespace gradplane::port
