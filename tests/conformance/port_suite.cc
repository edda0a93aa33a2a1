// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/conformance/port_suite.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tests/support/catch.h"

namespace gradplane::conformance {
namespace {

using port::PortDrop;
using port::TrafficClass;

constexpr std::uint16_t kPort = 4791;
constexpr std::uint16_t kEntropyPort = 50123;

void throw_away_what_waits(PortPair& p) {
  std::vector<Received> rest;
  std::size_t before = 0;
  do {
    before = rest.size();
    receive_into(p.left, rest);
    receive_into(p.right, rest);
  } while (rest.size() > before);
}

// Sends until the neighbour is resolved and a datagram has arrived.
void connect(PortPair& p, port::Port& from, port::Port& to) {
  std::vector<Received> at_from, at_to;
  Instant next_try;
  REQUIRE(poll_until([&] { return !at_to.empty(); },
                     [&] {
                       if (now() >= next_try) {
                         send(from, {to.address(), kPort}, kEntropyPort, pattern(8, 1));
                         next_try = now() + Duration::ms(5);
                       }
                       receive_into(from, at_from);
                       receive_into(to, at_to);
                     }));
  throw_away_what_waits(p);
}

PortPair& connected_ports() {
  PortPair& p = ports();
  static const bool once = [&] {
    connect(p, p.left, p.right);
    connect(p, p.right, p.left);
    return true;
  }();
  (void)once;
  throw_away_what_waits(p);
  return p;
}

Received send_and_receive(port::Port& from, port::Port& to, const std::vector<std::byte>& payload) {
  std::vector<Received> got;
  REQUIRE(send(from, {to.address(), kPort}, kEntropyPort, payload));
  REQUIRE(poll_until([&] { return !got.empty(); }, [&] { receive_into(to, got); }));
  REQUIRE(got.size() == 1);
  return got[0];
}

TEST_CASE("port: names an address and an MTU that a block fits") {
  PortPair& p = ports();
  CHECK(p.left.address() != p.right.address());
  CHECK(p.left.mtu_payload_bytes() >= kMaxHeaderBytes + kDefaultBlockBytes);
  CHECK(p.left.mtu_payload_bytes() == p.right.mtu_payload_bytes());
}

TEST_CASE("port: a payload arrives as it was sent, at every size") {
  PortPair& p = connected_ports();
  const std::size_t largest = p.left.mtu_payload_bytes();
  for (std::size_t size = 1; size <= largest; size += size < 1500 || size + 97 > largest ? 1 : 97) {
    const std::vector<std::byte> payload = pattern(size, static_cast<std::uint32_t>(size));
    const Received got = send_and_receive(p.left, p.right, payload);
    if (got.payload != payload) FAIL("size " << size);
  }
}

TEST_CASE("port: says who sent a datagram and to which UDP port") {
  PortPair& p = connected_ports();
  std::vector<Received> got;
  REQUIRE(send(p.right, {p.left.address(), 4800}, 61000, pattern(100, 7)));
  REQUIRE(poll_until([&] { return !got.empty(); }, [&] { receive_into(p.left, got); }));
  CHECK(got[0].source == Endpoint{p.right.address(), 61000});
  CHECK(got[0].destination_udp_port == 4800);
  CHECK_FALSE(got[0].congestion_experienced);
}

TEST_CASE("port: bursts keep their order, in both directions") {
  PortPair& p = connected_ports();
  for (auto [from, to] : {std::pair{&p.left, &p.right}, std::pair{&p.right, &p.left}}) {
    const std::uint64_t sent_before = from->total_counters().tx_datagrams;
    const std::uint64_t bytes_before = to->total_counters().rx_bytes;
    std::array<port::TxDatagram, port::kMaxBurst> burst;
    for (std::size_t i = 0; i < burst.size(); ++i) {
      REQUIRE(from->queue(0).allocate(burst[i]));
      REQUIRE(burst[i].buffer.size() >= from->mtu_payload_bytes());
      std::memset(burst[i].buffer.data(), static_cast<int>(i), 200);
      burst[i].length_bytes = 200;
      burst[i].destination = Endpoint{to->address(), kPort};
      burst[i].is_tagged = i % 2 == 1;  // with a checksum, or without one
    }
    REQUIRE(from->queue(0).transmit(burst) == burst.size());
    std::vector<Received> got;
    REQUIRE(
        poll_until([&] { return got.size() == burst.size(); }, [&] { receive_into(*to, got); }));
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(got[i].payload == std::vector<std::byte>(200, static_cast<std::byte>(i)));
    }
    CHECK(from->total_counters().tx_datagrams - sent_before == burst.size());
    CHECK(to->total_counters().rx_bytes - bytes_before == burst.size() * 200);
  }
}

TEST_CASE("port: control leaves before data of the same burst") {
  PortPair& p = connected_ports();
  std::array<port::TxDatagram, 9> burst;
  for (std::size_t i = 0; i < burst.size(); ++i) {
    REQUIRE(p.left.queue(0).allocate(burst[i]));
    std::memset(burst[i].buffer.data(), static_cast<int>(i), 64);
    burst[i].length_bytes = 64;
    burst[i].destination = Endpoint{p.right.address(), kPort};
    burst[i].traffic_class = i % 4 == 3 ? TrafficClass::kControl : TrafficClass::kData;
  }
  REQUIRE(p.left.queue(0).transmit(burst) == burst.size());
  std::vector<Received> got;
  REQUIRE(
      poll_until([&] { return got.size() == burst.size(); }, [&] { receive_into(p.right, got); }));
  std::vector<int> order;
  for (const Received& r : got) order.push_back(std::to_integer<int>(r.payload[0]));
  CHECK(order == std::vector<int>{3, 7, 0, 1, 2, 4, 5, 6, 8});
}

TEST_CASE("port: receive fills no more than it is given") {
  PortPair& p = connected_ports();
  for (std::uint32_t i = 0; i < 3; ++i) {
    REQUIRE(send(p.left, {p.right.address(), kPort}, kEntropyPort, pattern(64, i)));
  }
  port::RxDatagram one;
  CHECK(p.right.queue(0).receive({}) == 0);
  for (std::uint32_t i = 0; i < 3; ++i) {
    std::size_t count = 0;
    REQUIRE(poll_until([&] { return count > 0; },
                       [&] { count = p.right.queue(0).receive(std::span(&one, 1)); }));
    CHECK(std::equal(one.payload.begin(), one.payload.end(), pattern(64, i).begin()));
    p.right.queue(0).release(std::span(&one, 1));
    CHECK(one.token == nullptr);
  }
}

TEST_CASE("port: received buffers may be held and given back in any order") {
  PortPair& p = connected_ports();
  std::vector<port::RxDatagram> held;
  for (std::uint32_t i = 0; i < 8; ++i) {
    REQUIRE(send(p.left, {p.right.address(), kPort}, kEntropyPort, pattern(300, i)));
  }
  REQUIRE(poll_until([&] { return held.size() == 8; },
                     [&] {
                       std::array<port::RxDatagram, 4> some;
                       const std::size_t count = p.right.queue(0).receive(some);
                       held.insert(held.end(), some.begin(), some.begin() + count);
                     }));
  send_and_receive(p.left, p.right, pattern(300, 99));
  for (std::uint32_t i : {5u, 0u, 7u, 1u, 6u, 2u, 4u, 3u}) {
    CHECK(std::equal(held[i].payload.begin(), held[i].payload.end(), pattern(300, i).begin()));
    p.right.queue(0).release(std::span(&held[i], 1));
  }
}

TEST_CASE("port: a payload over the MTU is refused and counted") {
  PortPair& p = connected_ports();
  const std::uint64_t before = drops(p.left, PortDrop::kTooLong);
  const std::size_t spare = spare_buffers(p.left);
  CHECK_FALSE(send(p.left, {p.right.address(), kPort}, kEntropyPort,
                   pattern(p.left.mtu_payload_bytes() + 1, 3)));
  CHECK(drops(p.left, PortDrop::kTooLong) == before + 1);
  CHECK(spare_buffers(p.left) == spare);
}

TEST_CASE("port: an empty pool refuses, counts, and recovers") {
  PortPair& p = connected_ports();
  const std::uint64_t before = drops(p.left, PortDrop::kNoBuffer);
  std::vector<port::TxDatagram> all;
  port::TxDatagram d;
  while (p.left.queue(0).allocate(d)) all.push_back(d);
  CHECK(drops(p.left, PortDrop::kNoBuffer) == before + 1);
  CHECK(all.size() >= 4 * port::kMaxBurst);
  for (port::TxDatagram& held : all) p.left.queue(0).discard(held);
  CHECK(spare_buffers(p.left) == all.size());
  send_and_receive(p.left, p.right, pattern(500, 5));
}

TEST_CASE("port: nobody else's traffic is seen, and an unknown neighbour is counted") {
  PortPair& p = connected_ports();
  const std::uint64_t before = drops(p.left, PortDrop::kNoNeighbour);
  for (int i = 0; i < 10; ++i) {
    CHECK_FALSE(send(p.left, {p.nowhere, kPort}, kEntropyPort, pattern(100, 1)));
  }
  CHECK(drops(p.left, PortDrop::kNoNeighbour) == before + 10);
  const Received got = send_and_receive(p.left, p.right, pattern(100, 2));
  CHECK(got.payload == pattern(100, 2));
}

bool are_all_there(port::Port& port, std::size_t before, std::size_t kept_count) {
  const std::size_t after = spare_buffers(port);
  return std::max(before, after) - std::min(before, after) <= kept_count;
}

TEST_CASE("port: no buffer is lost over 100000 datagrams") {
  PortPair& p = connected_ports();
  constexpr std::size_t kDatagrams = 100000;
  const std::size_t left_before = spare_buffers(p.left);
  const std::size_t right_before = spare_buffers(p.right);
  std::vector<Received> got;
  std::size_t sent = 0, arrived = 0;
  Instant last_arrival = now();
  while (sent < kDatagrams) {
    std::array<port::TxDatagram, port::kMaxBurst> burst;
    std::size_t count = 0;
    for (port::TxDatagram& d : burst) {
      if (!p.left.queue(0).allocate(d)) break;
      d.length_bytes = 1400;
      d.destination = Endpoint{p.right.address(), kPort};
      ++count;
    }
    REQUIRE(count > 0);
    sent += p.left.queue(0).transmit(std::span(burst).first(count));
    // The window is one burst, so no queue overflows and everything must arrive.
    while (arrived < sent && now() - last_arrival < Duration::seconds(10)) {
      got.clear();
      receive_into(p.right, got);
      receive_into(p.left, got);
      arrived += got.size();
      if (!got.empty()) last_arrival = now();
    }
    REQUIRE(arrived == sent);
  }
  CHECK(are_all_there(p.left, left_before, p.kept_count));
  CHECK(are_all_there(p.right, right_before, p.kept_count));
}

}  // namespace
}  // namespace gradplane::conformance
