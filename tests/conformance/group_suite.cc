// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>

#include "tests/conformance/port_suite.h"
#include "tests/support/catch.h"

/// Datagrams to a group, at a port that has joined it, has left it, or never joined.
namespace gradplane::conformance {
namespace {

using port::Group;

constexpr Group kGroup{.address = {0xefc00001}, .udp_port = 4791};      // 239.192.0.1
constexpr Group kOtherPort{.address = {0xefc00001}, .udp_port = 4800};  // the same address
// 239.64.0.1 has the same Ethernet address as 239.192.0.1.
constexpr Group kTwin{.address = {0xef400001}, .udp_port = 4791};

/// Whether a datagram to the group arrives at `to` before one to the node, which is sent later.
bool hears(port::Port& from, port::Port& to, const Group& group) {
  std::vector<Received> got;
  const auto is = [&](std::uint32_t seed) {
    return std::any_of(got.begin(), got.end(),
                       [&](const Received& r) { return r.payload == pattern(200, seed); });
  };
  Instant next_try;
  // The device may not be ready, and the node's address may not be resolved yet.
  REQUIRE(poll_until([&] { return is(2); },
                     [&] {
                       if (now() >= next_try &&
                           send(from.queue(0), group, 50000, pattern(200, 1))) {
                         send(from, {to.address(), kFirstUdpPort}, 50000, pattern(200, 2));
                         next_try = now() + Duration::ms(20);
                       }
                       std::vector<Received> ignored;
                       receive_into(from, ignored);
                       receive_into(to, got);
                     }));
  const bool heard = is(1);
  for (const Received& r : got) {
    if (r.payload == pattern(200, 1)) CHECK(r.destination_udp_port == group.udp_port);
    CHECK(r.source.address == from.address());
  }
  // Datagrams that were sent more than once may still arrive.
  std::size_t before = 0;
  do {
    before = got.size();
    receive_into(to, got);
  } while (got.size() > before);
  return heard;
}

}  // namespace

TEST_CASE("groups: who joins hears, who leaves does not, and who never joined neither") {
  PortPair& p = ports();
  CHECK_FALSE(hears(p.left, p.right, kGroup));
  REQUIRE(p.right.join_group(kGroup));
  CHECK(hears(p.left, p.right, kGroup));
  CHECK_FALSE(hears(p.left, p.right, kOtherPort));
  CHECK_FALSE(hears(p.left, p.right, kTwin));
  p.right.leave_group(kGroup);
  CHECK_FALSE(hears(p.left, p.right, kGroup));
}

TEST_CASE("groups: both ends may be in one, and neither hears itself") {
  PortPair& p = ports();
  REQUIRE(p.left.join_group(kGroup));
  REQUIRE(p.right.join_group(kGroup));
  CHECK(hears(p.left, p.right, kGroup));
  CHECK(hears(p.right, p.left, kGroup));
  REQUIRE(send(p.left.queue(0), kGroup, 50000, pattern(200, 3)));
  std::vector<Received> at_left, at_right;
  REQUIRE(poll_until([&] { return !at_right.empty(); }, [&] { receive_into(p.right, at_right); }));
  receive_into(p.left, at_left);
  CHECK(at_left.empty());
  p.left.leave_group(kGroup);
  p.right.leave_group(kGroup);
}

TEST_CASE("groups: two with one address are left one by one") {
  PortPair& p = ports();
  REQUIRE(p.right.join_group(kGroup));
  REQUIRE(p.right.join_group(kOtherPort));
  REQUIRE(p.right.join_group(kTwin));
  CHECK_FALSE(p.right.join_group(kTwin));
  p.right.leave_group(kGroup);
  CHECK(hears(p.left, p.right, kOtherPort));
  CHECK(hears(p.left, p.right, kTwin));
  CHECK_FALSE(hears(p.left, p.right, kGroup));
  p.right.leave_group(kOtherPort);
  p.right.leave_group(kTwin);
  p.right.leave_group(kTwin);  // has no effect
}

TEST_CASE("groups: what is no group cannot be joined") {
  PortPair& p = ports();
  CHECK_FALSE(p.right.join_group({.address = p.left.address(), .udp_port = 4791}));
  CHECK_FALSE(p.right.join_group({.address = {0xe0000001}, .udp_port = 4791}));
  CHECK_FALSE(send(p.left, {kGroup.address, kGroup.udp_port}, 50000, pattern(100, 1)));
}

}  // namespace gradplane::conformance
