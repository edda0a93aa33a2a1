// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/lab/network.h"

#include <vector>

#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::lab;

namespace {

constexpr Instant kStart = Instant::from_ns(5'000'000'000);
constexpr std::uint64_t kBroadcast = 0xffffffffffff;

Description describe(std::string_view yaml) {
  ParsedDescription parsed = parse_description(yaml, "test.yaml");
  for (const auto& error : parsed.errors) UNSCOPED_INFO(error.text());
  REQUIRE(parsed.description.has_value());
  return *parsed.description;
}

std::uint64_t mac(std::size_t host) {
  return 0x026770020000 + host;
}

void put_mac(std::vector<std::byte>& frame, std::size_t offset, std::uint64_t address) {
  for (std::size_t i = 0; i < 6; ++i) {
    frame[offset + i] = static_cast<std::byte>(address >> (40 - 8 * i) & 0xff);
  }
}

std::vector<std::byte> frame_from(std::size_t from, std::uint64_t to, std::size_t bytes = 100) {
  std::vector<std::byte> frame(bytes);
  put_mac(frame, 0, to);
  put_mac(frame, 6, mac(from));
  return frame;
}

struct Delivery {
  std::size_t host;
  Instant at;
  std::vector<std::byte> frame;
};

std::vector<Delivery> run(Network& network, Instant until) {
  std::vector<Delivery> result;
  network.run_until(until, [&](std::size_t host, Instant at, std::span<const std::byte> frame) {
    result.push_back({host, at, {frame.begin(), frame.end()}});
  });
  return result;
}

/// Every host sends a frame, so that the network knows where each host is.
void introduce_all(Network& network) {
  for (std::size_t host = 0; host < network.host_count(); ++host) {
    network.offer(host, kStart - Duration::seconds(4), frame_from(host, kBroadcast));
  }
  run(network, kStart - Duration::seconds(1));
  network.reset_counters();
}

/// Returns how long a frame takes from one host to another.
Duration travel(Network& network, std::size_t from, std::size_t to, Instant at = kStart) {
  network.offer(from, at, frame_from(from, mac(to)));
  const auto deliveries = run(network, at + Duration::seconds(100));
  REQUIRE(deliveries.size() == 1);
  CHECK(deliveries[0].host == to);
  return deliveries[0].at - at;
}

}  // namespace

TEST_CASE(
    "when a host's last data frame arrived is remembered; acks and lost frames are not data") {
  Network network(
      describe("defaults: {up: {delay: 2 ms}, down: {delay: 3 ms}}\n"
               "hosts: [a, {name: b, down: {loss: 100 %}}, c]"));
  introduce_all(network);
  const auto last = [&] {
    run(network, kStart + Duration::seconds(1));
    return network.find_link("a")->last_data_arrival;
  };
  network.offer(0, kStart, frame_from(0, mac(2), kDataFrameBytes - 1));
  CHECK(last() == Instant{});
  network.offer(0, kStart, frame_from(0, mac(2), kDataFrameBytes));
  network.offer(0, kStart + Duration::ms(9), frame_from(0, mac(1), kDataFrameBytes));
  CHECK(last() == kStart + Duration::ms(5));
  CHECK(network.find_link("c")->last_data_arrival == Instant{});
  network.reset_counters();
  CHECK(last() == Instant{});
}

TEST_CASE("a frame goes up, down, and to its receiver only, unchanged") {
  Network network(
      describe("defaults: {up: {delay: 2 ms}, down: {delay: 3 ms}}\n"
               "hosts: [a, b, {name: c, down: {delay: 7 ms}}]"));
  introduce_all(network);
  auto sent = frame_from(0, mac(2));
  sent[50] = std::byte{77};
  network.offer(0, kStart, sent);
  CHECK(run(network, kStart + Duration::ms(9) - Duration::ns(1)).empty());
  CHECK(network.next_event() == kStart + Duration::ms(9));
  const auto deliveries = run(network, kStart + Duration::ms(9));
  REQUIRE(deliveries.size() == 1);
  CHECK(deliveries[0].host == 2);
  CHECK(deliveries[0].frame == sent);
  CHECK(network.next_event() == Instant::never());
  CHECK(network.find_link("a")->first.counters().frames == 1);
  CHECK(network.find_link("a")->second.counters().frames == 0);
  CHECK(network.find_link("c")->second.counters().bytes == 100);
}

TEST_CASE("frames for a group and for somebody unknown go to all others") {
  Network network(describe("hosts: [a, b, c]"));
  const std::uint64_t to = GENERATE(as<std::uint64_t>{}, kBroadcast, 0x01005e000001, mac(9));
  network.offer(1, kStart, frame_from(1, to));
  const auto deliveries = run(network, kStart);
  REQUIRE(deliveries.size() == 2);
  CHECK(deliveries[0].host == 0);
  CHECK(deliveries[1].host == 2);
}

TEST_CASE("a frame that a host sends to itself does not come back") {
  Network network(describe("hosts: [a, b]"));
  introduce_all(network);
  network.offer(0, kStart, frame_from(0, mac(0)));
  CHECK(run(network, kStart).empty());
}

TEST_CASE("two senders share the downlink of one receiver") {
  // A frame has 124 bytes with Ethernet's overhead: 124 us at 8 Mbit/s.
  Network network(describe("defaults: {down: {rate: 8 Mbit/s}}\nhosts: [a, b, c]"));
  introduce_all(network);
  network.offer(0, kStart, frame_from(0, mac(2)));
  network.offer(1, kStart, frame_from(1, mac(2)));
  const auto deliveries = run(network, kStart + Duration::ms(1));
  REQUIRE(deliveries.size() == 2);
  CHECK(deliveries[0].at == kStart + Duration::us(124));
  CHECK(deliveries[1].at == kStart + Duration::us(248));
}

TEST_CASE("between sites a frame takes the fewest links, then the first in the file") {
  const char* sites = R"(
hosts: [{name: ha, site: a}, {name: hb, site: b}, {name: hc, site: c}, {name: hd, site: d}]
sites: [a, b, c, d]
site_links:
  - {name: ab, between: [a, b], delay: 1 ms, backward: {delay: 2 ms}}
  - {name: bc, between: [b, c], delay: 10 ms}
  - {name: ca, between: [c, a], delay: 100 ms, forward: {delay: 200 ms}}
  - {name: cd, between: [c, d], delay: 1 s}
  - {name: cd2, between: [c, d]}
)";
  Network network(describe(sites));
  introduce_all(network);
  CHECK(travel(network, 0, 1) == Duration::ms(1));
  CHECK(travel(network, 1, 0) == Duration::ms(2));
  // The way is one link of 100 ms, although two others would take 11 ms, and not the link without a
  // delay.
  CHECK(travel(network, 0, 2) == Duration::ms(100));
  CHECK(travel(network, 2, 0) == Duration::ms(200));
  CHECK(travel(network, 1, 3) == Duration::ms(1010));
  CHECK(network.find_link("cd2")->first.counters().frames == 0);
  CHECK(network.find_link("ca")->second.counters().frames == 1);
}

TEST_CASE("a scheduled change holds from its time on, and not before the start") {
  Network network(describe(R"(
hosts: [a, b]
schedule:
  - {at: 5 s, link: b, direction: down, set: {delay: 30 ms}}
  - {at: 2 s, link: b, set: {delay: 20 ms}}
)"));
  introduce_all(network);
  CHECK(travel(network, 0, 1, kStart + Duration::seconds(10)) == Duration{});
  const Instant begin = kStart + Duration::seconds(200);
  network.start_schedule(begin);
  CHECK(network.next_event() == begin + Duration::seconds(2));
  network.offer(0, begin + Duration::seconds(1), frame_from(0, mac(1)));
  REQUIRE(run(network, begin + Duration::ms(1500)).size() == 1);
  network.offer(0, begin + Duration::seconds(2), frame_from(0, mac(1)));
  network.offer(1, begin + Duration::seconds(2), frame_from(1, mac(0)));
  const auto both = run(network, begin + Duration::ms(2020));
  REQUIRE(both.size() == 2);
  CHECK(both[1].at == begin + Duration::ms(2020));
  CHECK(travel(network, 0, 1, begin + Duration::seconds(5)) == Duration::ms(30));
  // The second change concerns one direction.
  CHECK(travel(network, 1, 0, begin + Duration::seconds(400)) == Duration::ms(20));
  // The schedule can be started again.
  const Instant again = begin + Duration::seconds(600);
  network.start_schedule(again);
  CHECK(network.next_event() == again + Duration::seconds(2));
}

TEST_CASE("more frames under way than there is room for are counted and lost") {
  Network network(describe("defaults: {up: {delay: 1 s}}\nhosts: [a, b]"), 3);
  for (int i = 0; i < 5; ++i) network.offer(0, kStart, frame_from(0, kBroadcast));
  CHECK(network.counters().pool_exhausted == 2);
  CHECK(network.frames_in_flight() == 3);
  CHECK(run(network, kStart + Duration::seconds(1)).size() == 3);
  network.release_delivered();
  CHECK(network.frames_in_flight() == 0);
  network.offer(0, kStart + Duration::seconds(2), frame_from(0, kBroadcast));
  CHECK(network.frames_in_flight() == 1);
  CHECK(network.counters().pool_exhausted == 2);
}

TEST_CASE("duplicates, losses and groups give every buffer back") {
  Network network(describe("defaults: {up: {duplicate: 30 %, loss: 30 %}, down: {loss: 20 %, "
                           "duplicate: 50 %}}\nhosts: [a, b, c]"),
                  8);
  for (std::size_t i = 0; i < 1000; ++i) {
    const Instant at = kStart + Duration::ms(static_cast<std::int64_t>(i));
    network.offer(i % 3, at, frame_from(i % 3, i % 2 == 0 ? kBroadcast : mac((i + 1) % 3)));
    run(network, at);
  }
  run(network, kStart + Duration::seconds(10));
  network.release_delivered();
  CHECK(network.frames_in_flight() == 0);
  CHECK(network.counters().pool_exhausted == 0);
}

TEST_CASE("frames that are no frames are counted") {
  Network network(describe("hosts: [a, b]"));
  network.offer(0, kStart, std::vector<std::byte>(13));
  network.offer(0, kStart, std::vector<std::byte>(kMaxFrameBytes + 1));
  CHECK(network.counters().malformed == 2);
  CHECK(run(network, kStart).empty());
}

TEST_CASE("a long queue marks packets that can be marked, and their checksum stays right") {
  Network network(
      describe("defaults: {up: {rate: 8 Mbit/s, ecn_threshold: 100 B}}\nhosts: [a, b]"));
  introduce_all(network);
  const unsigned ecn = GENERATE(0U, 1U, 2U, 3U);
  auto frame = frame_from(0, mac(1));
  frame[12] = std::byte{0x08};
  frame[14] = std::byte{0x45};
  frame[15] = static_cast<std::byte>(0xb8 | ecn);
  frame[17] = std::byte{86};
  frame[22] = std::byte{64};
  const auto sum = [](const std::vector<std::byte>& bytes) {
    std::uint32_t total = 0;
    for (std::size_t i = 14; i < 34; i += 2) {
      total += std::to_integer<std::uint32_t>(bytes[i]) << 8;
      total += std::to_integer<std::uint32_t>(bytes[i + 1]);
    }
    while (total > 0xffff) total = (total & 0xffff) + (total >> 16);
    return total;
  };
  const std::uint32_t checksum = 0xffff - sum(frame);
  frame[24] = static_cast<std::byte>(checksum >> 8);
  frame[25] = static_cast<std::byte>(checksum & 0xff);
  network.offer(0, kStart, frame);
  network.offer(0, kStart, frame);
  const auto deliveries = run(network, kStart + Duration::ms(1));
  REQUIRE(deliveries.size() == 2);
  CHECK(deliveries[0].frame == frame);
  CHECK(std::to_integer<unsigned>(deliveries[1].frame[15]) == (ecn == 0 ? 0xb8 : 0xbb));
  CHECK(sum(deliveries[1].frame) == 0xffff);
  CHECK(network.find_link("a")->first.counters().marks == (ecn == 0 ? 0 : 1));
}
