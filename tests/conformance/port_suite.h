// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "dataplane/port/port.h"

/// One suite for every port. Each executable links port_suite.cc with one definition of ports().
namespace gradplane::conformance {

struct PortPair {
  port::Port& left;
  port::Port& right;
  Ipv4 nowhere;                // on their subnet, and nobody's
  std::size_t kept_count = 0;  // sent buffers that a device may keep for a while, at most
  bool steers = false;         // the device gives each queue what is for its UDP port
};

/// The two ends of one network, opened on the first call and left open.
PortPair& ports();

/// The same with kQueues queues in each port, on another network; the Error says why there are
/// none.
inline constexpr std::size_t kQueues = 2;
inline constexpr std::uint16_t kFirstUdpPort = 4792;
inline constexpr port::Steering kSteering{.queue_count = kQueues, .first_udp_port = kFirstUdpPort};
Result<PortPair*> ports_with_queues();

Instant now();

/// Polls until `done` says so; false when it has not after a generous while. The bound is there
/// for a broken port, not as a measurement.
bool poll_until(const std::function<bool()>& done, const std::function<void()>& poll);

struct Received {
  std::vector<std::byte> payload;
  Endpoint source;
  std::uint16_t destination_udp_port = 0;
  bool congestion_experienced = false;
};

/// Ticks the queue, takes one burst and gives its buffers back.
void receive_into(port::PortQueue& queue, std::vector<Received>& out);
/// Of all queues of the port.
void receive_into(port::Port& port, std::vector<Received>& out);

/// Bytes that tell one datagram from another.
std::vector<std::byte> pattern(std::size_t bytes, std::uint32_t seed);

/// Sends one datagram; true when the device took it.
bool send(port::PortQueue& from, const port::Destination& to, std::uint16_t source_udp_port,
          const std::vector<std::byte>& payload,
          port::TrafficClass traffic_class = port::TrafficClass::kData);
/// From queue 0 to a node.
bool send(port::Port& from, const Endpoint& to, std::uint16_t source_udp_port,
          const std::vector<std::byte>& payload,
          port::TrafficClass traffic_class = port::TrafficClass::kData);

/// How many buffers allocate() of queue 0 has left; takes them all and gives them back.
std::size_t spare_buffers(port::Port& port);

std::uint64_t drops(port::Port& port, port::PortDrop reason);

}  // namespace gradplane::conformance
