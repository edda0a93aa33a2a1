// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "tests/conformance/port_suite.h"
#include "tests/support/catch.h"

/// Ports with two queues: which queue gets a datagram, and one thread for each queue.
namespace gradplane::conformance {
namespace {

constexpr std::uint16_t udp_port_of(std::size_t queue) {
  return static_cast<std::uint16_t>(kFirstUdpPort + queue);
}

/// Sends from every queue to every queue until all have received something. Then discards what
/// waits.
void connect(port::Port& from, port::Port& to) {
  std::array<std::vector<Received>, kQueues> got;
  const auto is_done = [&] {
    for (const auto& at_queue : got) {
      std::array<bool, kQueues> seen{};
      for (const Received& r : at_queue) {
        REQUIRE(r.source.udp_port < kQueues);
        seen[r.source.udp_port] = true;
      }
      if (!std::all_of(seen.begin(), seen.end(), [](bool s) { return s; })) return false;
    }
    return true;
  };
  Instant next_try;
  const auto poll = [&] {
    for (std::uint16_t q = 0; q < kQueues && now() >= next_try; ++q) {
      for (std::size_t r = 0; r < kQueues; ++r) {
        send(from.queue(q), Endpoint{to.address(), udp_port_of(r)}, q, pattern(64, 1));
      }
      if (q == kQueues - 1) next_try = now() + Duration::ms(20);
    }
    std::vector<Received> ignored;
    receive_into(from, ignored);
    for (std::size_t q = 0; q < kQueues; ++q) receive_into(to.queue(q), got[q]);
  };
  REQUIRE(poll_until(is_done, poll));
  for (std::size_t quiet = 0; quiet < 3; ++quiet) {
    std::vector<Received> rest;
    receive_into(to, rest);
    if (!rest.empty()) quiet = 0;
  }
}

/// The pair with queues. If ports have only one queue, prints the reason and returns null.
PortPair* connected() {
  const Result<PortPair*> opened = ports_with_queues();
  if (!opened) {
    WARN("skipped: " << opened.error().message);
    return nullptr;
  }
  PortPair* const p = opened.value();
  connect(p->left, p->right);
  connect(p->right, p->left);
  return p;
}

}  // namespace

TEST_CASE("queues: a device that steers leaves nothing to be handed over") {
  PortPair* const p = connected();
  if (p == nullptr || !p->steers) return;
  const std::uint64_t before = p->right.total_counters().handed_over;
  constexpr std::size_t kRounds = 50;
  std::array<std::size_t, kQueues> sent{};
  std::array<std::vector<Received>, kQueues> got;
  for (std::uint16_t n = 0; n < kRounds; ++n) {
    for (std::size_t to = 0; to < kQueues; ++to) {
      const Endpoint there{p->right.address(), udp_port_of(to)};
      const auto source = static_cast<std::uint16_t>(50000 + 7 * n);
      sent[to] += send(p->left.queue(n % kQueues), there, source, pattern(100, n)) ? 1 : 0;
    }
    for (std::size_t q = 0; q < kQueues; ++q) receive_into(p->right.queue(q), got[q]);
  }
  REQUIRE(poll_until([&] { return got[0].size() >= sent[0] && got[1].size() >= sent[1]; },
                     [&] {
                       for (std::size_t q = 0; q < kQueues; ++q) {
                         receive_into(p->right.queue(q), got[q]);
                       }
                     }));
  CHECK(sent[1] == kRounds);
  CHECK(p->right.total_counters().handed_over == before);
}

TEST_CASE("queues: a datagram comes to the queue of its UDP port, whichever queue has sent it") {
  PortPair* const p = connected();
  if (p == nullptr) return;
  for (std::size_t from = 0; from < kQueues; ++from) {
    for (std::size_t to = 0; to < kQueues; ++to) {
      const std::vector<std::byte> payload = pattern(300, static_cast<std::uint32_t>(from + 7));
      REQUIRE(
          send(p->left.queue(from), Endpoint{p->right.address(), udp_port_of(to)}, 50000, payload));
      std::array<std::vector<Received>, kQueues> got;
      REQUIRE(poll_until([&] { return !got[to].empty(); },
                         [&] {
                           for (std::size_t q = 0; q < kQueues; ++q) {
                             receive_into(p->right.queue(q), got[q]);
                           }
                         }));
      CHECK(got[to].size() == 1);
      CHECK(got[to][0].payload == payload);
      CHECK(got[to][0].destination_udp_port == udp_port_of(to));
      CHECK(got[1 - to].empty());
    }
  }
}

TEST_CASE("queues: what comes to no queue's UDP port is for queue 0") {
  PortPair* const p = connected();
  if (p == nullptr) return;
  REQUIRE(send(p->left.queue(1), Endpoint{p->right.address(), udp_port_of(kQueues)}, 50000,
               pattern(100, 1)));
  std::vector<Received> at_0, at_1;
  REQUIRE(poll_until([&] { return !at_0.empty(); },
                     [&] {
                       receive_into(p->right.queue(1), at_1);
                       receive_into(p->right.queue(0), at_0);
                     }));
  CHECK(at_1.empty());
}

TEST_CASE("queues: a group's UDP port says its queue") {
  PortPair* const p = connected();
  if (p == nullptr) return;
  const port::Group group{.address = {0xefc00002}, .udp_port = udp_port_of(1)};
  REQUIRE(p->right.join_group(group));
  REQUIRE(send(p->left.queue(0), group, 50000, pattern(100, 5)));
  std::vector<Received> at_0, at_1;
  REQUIRE(poll_until([&] { return !at_1.empty(); },
                     [&] {
                       receive_into(p->right.queue(0), at_0);
                       receive_into(p->right.queue(1), at_1);
                     }));
  CHECK(at_1[0].payload == pattern(100, 5));
  CHECK(at_0.empty());
  p->right.leave_group(group);
}

TEST_CASE("queues: each counts what is its own, and the port has their sum") {
  PortPair* const p = connected();
  if (p == nullptr) return;
  std::array<std::uint64_t, kQueues> before;
  for (std::size_t q = 0; q < kQueues; ++q) {
    before[q] = p->left.queue(q).counters().tx_datagrams;
  }
  REQUIRE(send(p->left.queue(1), Endpoint{p->right.address(), udp_port_of(1)}, 1, pattern(64, 1)));
  CHECK(p->left.queue(0).counters().tx_datagrams == before[0]);
  CHECK(p->left.queue(1).counters().tx_datagrams == before[1] + 1);
  CHECK(p->left.total_counters().tx_datagrams == before[0] + before[1] + 1);
}

TEST_CASE("queues: a thread for each, at both ends, and nothing is lost or out of order") {
  PortPair* const p = connected();
  if (p == nullptr) return;
  constexpr std::uint64_t kDatagrams = 5000;
  constexpr std::uint64_t kWindow = 16;
  std::array<std::atomic<std::uint64_t>, kQueues> arrived{};
  std::atomic<bool> failed{false};
  const Instant end = now() + Duration::seconds(30);
  const auto goes_on = [&] {
    if (now() > end) failed = true;
    return !failed && std::any_of(arrived.begin(), arrived.end(),
                                  [](const auto& count) { return count < kDatagrams; });
  };
  // Both threads poll until the end, because a queue also hands over the other's datagrams.
  const auto receiver = [&](std::size_t q) {
    std::vector<Received> got;
    while (goes_on()) {
      got.clear();
      receive_into(p->right.queue(q), got);
      for (const Received& r : got) {
        std::uint64_t number = 0;
        std::memcpy(&number, r.payload.data(), sizeof number);
        if (number != arrived[q].load() || r.source.udp_port != 50000 + q) failed = true;
        arrived[q].store(number + 1);
      }
      if (got.empty()) std::this_thread::yield();
    }
  };
  const auto sender = [&](std::size_t q) {
    std::vector<Received> ignored;
    std::vector<std::byte> payload(64);
    const std::size_t to = 1 - q;  // so that frames change queues where rings meet
    for (std::uint64_t sent = 0; goes_on();) {
      receive_into(p->left.queue(q), ignored);
      if (sent == kDatagrams || sent - arrived[to].load() >= kWindow) {
        std::this_thread::yield();
        continue;
      }
      std::memcpy(payload.data(), &sent, sizeof sent);
      const auto source_port = static_cast<std::uint16_t>(50000 + to);
      if (send(p->left.queue(q), Endpoint{p->right.address(), udp_port_of(to)}, source_port,
               payload)) {
        ++sent;
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t q = 0; q < kQueues; ++q) {
    threads.emplace_back(receiver, q);
    threads.emplace_back(sender, q);
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_FALSE(failed);
  for (const auto& count : arrived) CHECK(count == kDatagrams);
}

}  // namespace gradplane::conformance
