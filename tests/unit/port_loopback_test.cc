// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "dataplane/port/loopback/loopback.h"
#include "tests/support/catch.h"

namespace gradplane::port {
namespace {

constexpr std::array kAddresses = {Ipv4{1}, Ipv4{2}, Ipv4{3}};

bool send_number(Port& from, Ipv4 to, std::uint64_t number,
                 TrafficClass traffic_class = TrafficClass::kData) {
  TxDatagram d;
  if (!from.allocate(d)) return false;
  std::memcpy(d.buffer.data(), &number, sizeof number);
  d.length_bytes = sizeof number;
  d.destination = {to, 9};
  d.traffic_class = traffic_class;
  return from.transmit(std::span(&d, 1)) == 1;
}

std::uint64_t number_in(const RxDatagram& d) {
  std::uint64_t number = 0;
  std::memcpy(&number, d.payload.data(), sizeof number);
  return number;
}

TEST_CASE("loopback: what cannot be is refused with the reason") {
  const std::array twice = {Ipv4{1}, Ipv4{1}};
  CHECK_FALSE(LoopbackNetwork::create({}, {}));
  CHECK_FALSE(LoopbackNetwork::create(twice, {}));
  CHECK_FALSE(LoopbackNetwork::create(kAddresses, {.queue_count = 100}));
  CHECK_FALSE(LoopbackNetwork::create(kAddresses, {.mtu_payload_bytes = 0}));
  CHECK_FALSE(LoopbackNetwork::create(kAddresses, {.tx_buffer_count = 0}));
  const auto network = LoopbackNetwork::create(kAddresses, {});
  REQUIRE(network);
  CHECK_FALSE(network.value()->open(Ipv4{9}));
  auto first = network.value()->open(Ipv4{1});
  REQUIRE(first);
  CHECK_FALSE(network.value()->open(Ipv4{1}));
  first.value().reset();
  CHECK(network.value()->open(Ipv4{1}));
}

TEST_CASE("loopback: alone, a port receives what it sends to itself") {
  const auto port = open_lonely_loopback(Ipv4{5}, {});
  REQUIRE(port);
  REQUIRE(send_number(*port.value(), Ipv4{5}, 77));
  RxDatagram d;
  REQUIRE(port.value()->receive(std::span(&d, 1)) == 1);
  CHECK(number_in(d) == 77);
  port.value()->release(std::span(&d, 1));
}

TEST_CASE("loopback: a full queue of data refuses, counts, and leaves room for control") {
  const auto network = LoopbackNetwork::create(kAddresses, {.queue_count = 4});
  auto a = network.value()->open(Ipv4{1});
  auto b = network.value()->open(Ipv4{2});
  for (std::uint64_t i = 0; i < 4; ++i) REQUIRE(send_number(*a.value(), Ipv4{2}, i));
  CHECK_FALSE(send_number(*a.value(), Ipv4{2}, 4));
  CHECK(a.value()->counters().drops[static_cast<std::size_t>(PortDrop::kTxFull)] == 1);
  REQUIRE(send_number(*a.value(), Ipv4{2}, 5, TrafficClass::kControl));
  std::array<RxDatagram, 8> got;
  REQUIRE(b.value()->receive(got) == 5);
  CHECK(number_in(got[0]) == 5);
  CHECK(number_in(got[4]) == 3);
  // Taken is not given back: there is no room yet.
  CHECK_FALSE(send_number(*a.value(), Ipv4{2}, 6));
  b.value()->release(std::span(got).first(5));
  CHECK(send_number(*a.value(), Ipv4{2}, 7));
}

TEST_CASE("loopback: to an address whose port is closed") {
  const auto network = LoopbackNetwork::create(kAddresses, {});
  auto a = network.value()->open(Ipv4{1});
  CHECK_FALSE(send_number(*a.value(), Ipv4{2}, 1));
  CHECK(a.value()->counters().drops[static_cast<std::size_t>(PortDrop::kNoNeighbour)] == 1);
  auto b = network.value()->open(Ipv4{2});
  REQUIRE(send_number(*a.value(), Ipv4{2}, 1));
  b.value().reset();
  b = network.value()->open(Ipv4{2});
  RxDatagram d;
  CHECK(b.value()->receive(std::span(&d, 1)) == 0);
}

TEST_CASE("loopback: two threads send to a third; all arrives once and in each one's order") {
  const auto network = LoopbackNetwork::create(kAddresses, {.queue_count = 64});
  auto a = network.value()->open(Ipv4{1});
  auto b = network.value()->open(Ipv4{2});
  auto sink = network.value()->open(Ipv4{3});
  constexpr std::uint64_t kEach = 20000;
  const auto sender = [](Port& port) {
    for (std::uint64_t i = 0; i < kEach;) {
      if (send_number(port, Ipv4{3}, i)) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  };
  std::thread first(sender, std::ref(*a.value()));
  std::thread second(sender, std::ref(*b.value()));
  std::array<std::uint64_t, 3> next{};
  bool in_order = true;
  while (next[1] + next[2] < 2 * kEach) {
    std::array<RxDatagram, kMaxBurst> burst;
    const std::size_t count = sink.value()->receive(burst);
    for (std::size_t i = 0; i < count; ++i) {
      in_order = in_order && number_in(burst[i]) == next[burst[i].source.address.value]++;
    }
    sink.value()->release(std::span(burst).first(count));
    if (count == 0) std::this_thread::yield();
  }
  first.join();
  second.join();
  CHECK(in_order);
  CHECK(next[1] == kEach);
  CHECK(next[2] == kEach);
}

TEST_CASE("port: every reason for a drop has a name of its own") {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < static_cast<std::size_t>(PortDrop::kCount); ++i) {
    names.push_back(port_drop_name(static_cast<PortDrop>(i)));
    CHECK_FALSE(names.back() == "unknown");
    CHECK(std::count(names.begin(), names.end(), names.back()) == 1);
  }
}

}  // namespace
}  // namespace gradplane::port
