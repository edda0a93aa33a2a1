// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <time.h>

#include <array>
#include <cstdio>
#include <thread>
#include <vector>

#include "tests/conformance/port_suite.h"
#include "tests/support/catch.h"

/// Prints how fast the pair of ports is. This is not a test; run it with the tag [.rate].
namespace gradplane::conformance {
namespace {

constexpr std::uint32_t kPayloadBytes = 1400;
constexpr Duration kRun = Duration::seconds(3);

std::size_t send_burst(port::Port& from, Ipv4 to) {
  std::array<port::TxDatagram, port::kMaxBurst> burst;
  std::size_t count = 0;
  for (port::TxDatagram& d : burst) {
    if (!from.queue(0).allocate(d)) break;
    d.length_bytes = kPayloadBytes;
    d.destination = Endpoint{to, 4791};
    ++count;
  }
  return from.queue(0).transmit(std::span(burst).first(count));
}

double thread_cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

std::size_t receive_burst(port::Port& port) {
  std::array<port::RxDatagram, port::kMaxBurst> burst;
  const std::size_t count = port.queue(0).receive(burst);
  port.queue(0).release(std::span(burst).first(count));
  return count;
}

TEST_CASE("rate: one sender thread, one receiver thread", "[.rate]") {
  PortPair& p = ports();
  std::vector<Received> got;
  REQUIRE(poll_until([&] { return !got.empty(); },
                     [&] {
                       send(p.left, {p.right.address(), 4791}, 1, pattern(64, 1));
                       receive_into(p.left, got);
                       receive_into(p.right, got);
                     }));
  const Instant end = now() + kRun;
  std::uint64_t sent = 0, received = 0;
  double sender_cpu = 0, receiver_cpu = 0;
  std::thread sender([&] {
    while (now() < end) {
      p.left.queue(0).tick(now());
      sent += send_burst(p.left, p.right.address());
      receive_burst(p.left);
    }
    sender_cpu = thread_cpu_seconds();
  });
  std::thread receiver([&] {
    while (now() < end) {
      p.right.queue(0).tick(now());
      received += receive_burst(p.right);
    }
    receiver_cpu = thread_cpu_seconds();
  });
  sender.join();
  receiver.join();
  const double seconds = kRun.to_seconds();
  std::printf("%u-byte payloads: sent %.3f Mpps, received %.3f Mpps (%.2f Gbit/s)\n", kPayloadBytes,
              static_cast<double>(sent) / seconds * 1e-6,
              static_cast<double>(received) / seconds * 1e-6,
              static_cast<double>(received) * kPayloadBytes * 8 / seconds * 1e-9);
  std::printf("per second of the thread's CPU: sent %.3f Mpps, received %.3f Mpps\n",
              static_cast<double>(sent) / sender_cpu * 1e-6,
              static_cast<double>(received) / receiver_cpu * 1e-6);
  std::printf("missed by the receiver: %llu, refused by the sender's device: %llu\n",
              static_cast<unsigned long long>(p.right.total_counters().rx_missed),
              static_cast<unsigned long long>(drops(p.left, port::PortDrop::kTxFull)));
}

}  // namespace
}  // namespace gradplane::conformance
