// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "dataplane/port/port.h"

/// One test suite for all ports. Each executable links port_suite.cc with a definition of ports().
namespace gradplane::conformance {

struct PortPair {
  port::Port& left;
  port::Port& right;
  Ipv4 nowhere;                // an address on their subnet that no host has
  std::size_t kept_count = 0;  // the most sent buffers that a device may keep for a while
  bool steers = false;         // the device itself gives each queue the datagrams for its UDP port
};

/// Two ports on one network, which the first call opens and which stay open.
PortPair& ports();

/// Two ports with kQueues queues each, on another network. The Error says why there are none.
inline constexpr std::size_t kQueues = 2;
inline constexpr std::uint16_t kFirstUdpPort = 4792;
inline constexpr port::Steering kSteering{.queue_count = kQueues, .first_udp_port = kFirstUdpPort};
Result<PortPair*> ports_with_queues();

Instant now();

/// Polls until `done` is true. Returns false if it is not true after a long time. The limit only
/// keeps a broken port from hanging the test.
bool poll_until(const std::function<bool()>& done, const std::function<void()>& poll);

struct Received {
  std::vector<std::byte> payload;
  Endpoint source;
  std::uint16_t destination_udp_port = 0;
  bool congestion_experienced = false;
};

/// Ticks the queue, takes one burst and gives its buffers back.
void receive_into(port::PortQueue& queue, std::vector<Received>& out);
/// Receives from all queues of the port.
void receive_into(port::Port& port, std::vector<Received>& out);

/// A payload that differs between seeds.
std::vector<std::byte> pattern(std::size_t bytes, std::uint32_t seed);

/// Sends one datagram. Returns whether the device took it.
bool send(port::PortQueue& from, const port::Destination& to, std::uint16_t source_udp_port,
          const std::vector<std::byte>& payload,
          port::TrafficClass traffic_class = port::TrafficClass::kData);
/// Sends from queue 0 to a node.
bool send(port::Port& from, const Endpoint& to, std::uint16_t source_udp_port,
          const std::vector<std::byte>& payload,
          port::TrafficClass traffic_class = port::TrafficClass::kData);

/// A payload that is copied at its ends, and lent between them.
struct Parts {
  std::span<const std::byte> head;
  std::span<const std::byte> lent;
  std::span<const std::byte> tail;
  bool is_tagged = true;  // without a UDP checksum
};
bool send_parts(port::PortQueue& from, const Endpoint& to, std::uint16_t source_udp_port,
                const Parts& parts);

/// Sends until a datagram has arrived at the right port, so that both have resolved each other.
void connect(PortPair& p);

inline constexpr std::size_t kPageBytes = 4096;
/// Whole pages of memory, which are zero.
class Pages {
 public:
  explicit Pages(std::size_t bytes);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

/// How many buffers queue 0 can still allocate. Takes them all and gives them back.
std::size_t spare_buffers(port::Port& port);

std::uint64_t drops(port::Port& port, port::PortDrop reason);

}  // namespace gradplane::conformance
