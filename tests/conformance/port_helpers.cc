// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "tests/conformance/port_suite.h"
#include "tests/support/catch.h"

namespace gradplane::conformance {

Instant now() {
  return Instant::from_ns(std::chrono::duration_cast<std::chrono::nanoseconds>(
                              std::chrono::steady_clock::now().time_since_epoch())
                              .count());
}

bool poll_until(const std::function<bool()>& done, const std::function<void()>& poll) {
  const Instant end = now() + Duration::seconds(10);
  while (!done()) {
    if (now() > end) return false;
    poll();
  }
  return true;
}

void receive_into(port::Port& port, std::vector<Received>& out) {
  for (std::size_t q = 0; q < port.queue_count(); ++q) receive_into(port.queue(q), out);
}

void receive_into(port::PortQueue& queue, std::vector<Received>& out) {
  queue.tick(now());
  std::array<port::RxDatagram, port::kMaxBurst> burst;
  const std::size_t count = queue.receive(burst);
  for (std::size_t i = 0; i < count; ++i) {
    const port::RxDatagram& d = burst[i];
    out.push_back({.payload = {d.payload.begin(), d.payload.end()},
                   .source = d.source,
                   .destination_udp_port = d.destination_udp_port,
                   .congestion_experienced = d.congestion_experienced});
  }
  queue.release(std::span(burst).first(count));
}

std::vector<std::byte> pattern(std::size_t bytes, std::uint32_t seed) {
  std::vector<std::byte> out(bytes);
  std::uint32_t x = seed * 2654435761u + 1;
  for (std::byte& b : out) {
    x = x * 1664525u + 1013904223u;
    b = static_cast<std::byte>(x >> 24);
  }
  return out;
}

bool send(port::Port& from, const Endpoint& to, std::uint16_t source_udp_port,
          const std::vector<std::byte>& payload, port::TrafficClass traffic_class) {
  return send(from.queue(0), to, source_udp_port, payload, traffic_class);
}

bool send(port::PortQueue& from, const port::Destination& to, std::uint16_t source_udp_port,
          const std::vector<std::byte>& payload, port::TrafficClass traffic_class) {
  port::TxDatagram d;
  if (!from.allocate(d)) return false;
  std::memcpy(d.buffer.data(), payload.data(), std::min(payload.size(), d.buffer.size()));
  d.length_bytes = static_cast<std::uint32_t>(payload.size());
  d.destination = to;
  d.source_udp_port = source_udp_port;
  d.traffic_class = traffic_class;
  return from.transmit(std::span(&d, 1)) == 1;
}

bool send_parts(port::PortQueue& from, const Endpoint& to, std::uint16_t source_udp_port,
                const Parts& parts) {
  port::TxDatagram d;
  if (!from.allocate(d)) return false;
  std::copy(parts.head.begin(), parts.head.end(), d.buffer.begin());
  std::copy(parts.tail.begin(), parts.tail.end(), d.buffer.subspan(parts.head.size()).begin());
  d.length_bytes = static_cast<std::uint32_t>(parts.head.size() + parts.tail.size());
  d.lent = parts.lent;
  d.lent_at_bytes = static_cast<std::uint32_t>(parts.head.size());
  d.destination = to;
  d.source_udp_port = source_udp_port;
  d.is_tagged = parts.is_tagged;
  return from.transmit(std::span(&d, 1)) == 1;
}

void connect(PortPair& p) {
  constexpr std::uint16_t kPort = 4791;
  std::vector<Received> got;
  std::vector<Received> answers;
  REQUIRE(poll_until([&] { return !got.empty(); },
                     [&] {
                       send(p.left, {p.right.address(), kPort}, kPort, pattern(8, 1));
                       receive_into(p.left, answers);
                       receive_into(p.right, got);
                     }));
  std::vector<Received> rest;
  do {
    rest.clear();
    receive_into(p.right, rest);
  } while (!rest.empty());
}

Pages::Pages(std::size_t bytes) {
  void* const at =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(at != MAP_FAILED);
  bytes_ = {static_cast<std::byte*>(at), bytes};
}

Pages::~Pages() {
  ::munmap(bytes_.data(), bytes_.size());
}

std::size_t spare_buffers(port::Port& port) {
  std::vector<port::TxDatagram> all;
  port::TxDatagram d;
  while (port.queue(0).allocate(d)) all.push_back(d);
  for (port::TxDatagram& held : all) port.queue(0).discard(held);
  return all.size();
}

std::uint64_t drops(port::Port& port, port::PortDrop reason) {
  return port.total_counters().drops[static_cast<std::size_t>(reason)];
}

}  // namespace gradplane::conformance
