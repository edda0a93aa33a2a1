// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "dataplane/port/loopback/loopback.h"
#include "tests/support/catch.h"

namespace gradplane::port {
namespace {

constexpr std::array kAddresses = {Ipv4{1}, Ipv4{2}, Ipv4{3}};

bool send_number(PortQueue& from, const Destination& to, std::uint64_t number,
                 TrafficClass traffic_class = TrafficClass::kData) {
  TxDatagram d;
  if (!from.allocate(d)) return false;
  std::memcpy(d.buffer.data(), &number, sizeof number);
  d.length_bytes = sizeof number;
  d.destination = to;
  d.traffic_class = traffic_class;
  return from.transmit(std::span(&d, 1)) == 1;
}

bool send_number(PortQueue& from, Ipv4 to, std::uint64_t number,
                 TrafficClass traffic_class = TrafficClass::kData) {
  return send_number(from, Endpoint{to, 9}, number, traffic_class);
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
  CHECK_FALSE(LoopbackNetwork::create(kAddresses, {.waiting_count = 100}));
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
  REQUIRE(send_number(port.value()->queue(0), Ipv4{5}, 77));
  RxDatagram d;
  REQUIRE(port.value()->queue(0).receive(std::span(&d, 1)) == 1);
  CHECK(number_in(d) == 77);
  port.value()->queue(0).release(std::span(&d, 1));
}

TEST_CASE("loopback: a full queue of data refuses, counts, and leaves room for control") {
  const auto network = LoopbackNetwork::create(kAddresses, {.waiting_count = 4});
  auto a = network.value()->open(Ipv4{1});
  auto b = network.value()->open(Ipv4{2});
  for (std::uint64_t i = 0; i < 4; ++i) REQUIRE(send_number(a.value()->queue(0), Ipv4{2}, i));
  CHECK_FALSE(send_number(a.value()->queue(0), Ipv4{2}, 4));
  CHECK(a.value()->queue(0).counters().drops[static_cast<std::size_t>(PortDrop::kTxFull)] == 1);
  REQUIRE(send_number(a.value()->queue(0), Ipv4{2}, 5, TrafficClass::kControl));
  std::array<RxDatagram, 8> got;
  REQUIRE(b.value()->queue(0).receive(got) == 5);
  CHECK(number_in(got[0]) == 5);
  CHECK(number_in(got[4]) == 3);
  // A datagram that was received takes room until it is released.
  CHECK_FALSE(send_number(a.value()->queue(0), Ipv4{2}, 6));
  b.value()->queue(0).release(std::span(got).first(5));
  CHECK(send_number(a.value()->queue(0), Ipv4{2}, 7));
}

TEST_CASE("loopback: to an address whose port is closed") {
  const auto network = LoopbackNetwork::create(kAddresses, {});
  auto a = network.value()->open(Ipv4{1});
  CHECK_FALSE(send_number(a.value()->queue(0), Ipv4{2}, 1));
  CHECK(a.value()->queue(0).counters().drops[static_cast<std::size_t>(PortDrop::kNoNeighbour)] ==
        1);
  auto b = network.value()->open(Ipv4{2});
  REQUIRE(send_number(a.value()->queue(0), Ipv4{2}, 1));
  b.value().reset();
  b = network.value()->open(Ipv4{2});
  RxDatagram d;
  CHECK(b.value()->queue(0).receive(std::span(&d, 1)) == 0);
}

TEST_CASE("loopback: two threads send to a third; all arrives once and in each one's order") {
  const auto network = LoopbackNetwork::create(kAddresses, {.waiting_count = 64});
  auto a = network.value()->open(Ipv4{1});
  auto b = network.value()->open(Ipv4{2});
  auto sink = network.value()->open(Ipv4{3});
  constexpr std::uint64_t kEach = 20000;
  const auto sender = [](PortQueue& queue) {
    for (std::uint64_t i = 0; i < kEach;) {
      if (send_number(queue, Ipv4{3}, i)) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  };
  std::thread first(sender, std::ref(a.value()->queue(0)));
  std::thread second(sender, std::ref(b.value()->queue(0)));
  std::array<std::uint64_t, 3> next{};
  bool in_order = true;
  while (next[1] + next[2] < 2 * kEach) {
    std::array<RxDatagram, kMaxBurst> burst;
    const std::size_t count = sink.value()->queue(0).receive(burst);
    for (std::size_t i = 0; i < count; ++i) {
      in_order = in_order && number_in(burst[i]) == next[burst[i].source.address.value]++;
    }
    sink.value()->queue(0).release(std::span(burst).first(count));
    if (count == 0) std::this_thread::yield();
  }
  first.join();
  second.join();
  CHECK(in_order);
  CHECK(next[1] == kEach);
  CHECK(next[2] == kEach);
}

TEST_CASE("loopback: a group is who has joined it and has not left, but for the sender") {
  constexpr std::array kFive = {Ipv4{1}, Ipv4{2}, Ipv4{3}, Ipv4{4}, Ipv4{5}};
  constexpr Group kGroup{.address = {0xefc00001}, .udp_port = 9};
  const auto network = LoopbackNetwork::create(kFive, {});
  std::vector<std::unique_ptr<Port>> ports;
  for (const Ipv4 address : kFive) {
    ports.push_back(std::move(network.value()->open(address).value()));
  }
  for (const std::size_t member : {0, 1, 2, 3}) REQUIRE(ports[member]->join_group(kGroup));
  ports[2]->leave_group(kGroup);
  const auto heard = [&] {
    REQUIRE(send_number(ports[0]->queue(0), kGroup, 7));
    std::vector<std::size_t> who;
    for (std::size_t p = 0; p < ports.size(); ++p) {
      RxDatagram d;
      if (ports[p]->queue(0).receive(std::span(&d, 1)) == 0) continue;
      CHECK(number_in(d) == 7);
      ports[p]->queue(0).release(std::span(&d, 1));
      who.push_back(p);
    }
    return who;
  };
  CHECK(heard() == std::vector<std::size_t>{1, 3});
  // A port that is opened anew is in no group.
  ports[1].reset();
  ports[1] = std::move(network.value()->open(kFive[1]).value());
  CHECK(heard() == std::vector<std::size_t>{3});
}

TEST_CASE("port: what is no group, a group twice, and one group too many are refused") {
  GroupTable table;
  CHECK_FALSE(table.join({.address = {0x0a000001}, .udp_port = 9}));
  CHECK_FALSE(table.join({.address = {0xe0000001}, .udp_port = 9}));  // all hosts on the link
  CHECK_FALSE(table.join({.address = {0xf0000001}, .udp_port = 9}));
  CHECK_FALSE(table.join({.address = {0xefc00001}, .udp_port = 0}));
  for (std::uint16_t port = 1; port <= kMaxGroups; ++port) {
    REQUIRE(table.join({.address = {0xefc00001}, .udp_port = port}));
    CHECK_FALSE(table.join({.address = {0xefc00001}, .udp_port = 1}));
  }
  CHECK_FALSE(table.join({.address = {0xefc00002}, .udp_port = 1}));
  CHECK(table.leave({.address = {0xefc00001}, .udp_port = 5}));
  CHECK_FALSE(table.leave({.address = {0xefc00001}, .udp_port = 5}));
  CHECK_FALSE(table.has({.address = {0xefc00001}, .udp_port = 5}));
  CHECK(table.join({.address = {0xefc00002}, .udp_port = 1}));
  CHECK(table.addresses() == std::vector<Ipv4>{{0xefc00001}, {0xefc00002}});
}

TEST_CASE("port: groups that come and go are found, and no others") {
  GroupTable table;
  std::vector<Group> in;
  std::mt19937 random(1);
  for (std::uint32_t step = 0; step < 20'000; ++step) {
    const Group group{.address = {0xefc00000 + static_cast<std::uint32_t>(random() % 700)},
                      .udp_port = 47000};
    const auto at = std::find_if(in.begin(), in.end(),
                                 [&](const Group& g) { return g.address == group.address; });
    if (at != in.end()) {
      REQUIRE(table.leave(group));
      in.erase(at);
      REQUIRE_FALSE(table.has(group));
    } else if (in.size() < kMaxGroups) {
      REQUIRE(table.join(group));
      in.push_back(group);
    }
    if (step % 1000 != 0) continue;
    for (const Group& one : in) REQUIRE(table.has(one));
    CHECK(table.addresses().size() == in.size());
  }
  table.leave_all();
  CHECK(table.addresses().empty());
  for (std::uint32_t g = 0; g < kMaxGroups; ++g)
    REQUIRE(table.join({.address = {0xefd00000 + g}, .udp_port = 1}));
}

TEST_CASE("port: a queue has the UDP port of its number, and queue 0 what is nobody's") {
  constexpr Steering kThree{.queue_count = 3, .first_udp_port = 65533};
  CHECK(kThree.queue_of(65533) == 0);
  CHECK(kThree.queue_of(65535) == 2);
  CHECK(kThree.queue_of(0) == 0);  // port numbers wrap around, so 0 would be a fourth queue
  CHECK(kThree.queue_of(65532) == 0);
  CHECK(check(kThree));
  CHECK_FALSE(check(Steering{.queue_count = 4, .first_udp_port = 65533}));
  CHECK_FALSE(check(Steering{.queue_count = 0}));
  CHECK_FALSE(check(Steering{.queue_count = kMaxQueues + 1}));
  CHECK_FALSE(LoopbackNetwork::create(kAddresses, {.steering = {.queue_count = 0}}));
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
