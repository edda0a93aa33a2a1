// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <set>

#include "dataplane/port/group_address.h"
#include "tests/support/catch.h"

namespace gradplane::port {
namespace {

constexpr GroupName kName{.job = 0x12345678, .epoch = 9, .sender = 3, .tree = 1};
constexpr std::uint16_t kPort = 47000;

Ipv4 address_of(const GroupName& name, const GroupRange& range = {}) {
  return group_of(name, range, kPort).address;
}

TEST_CASE("group address: every node computes this one") {
  // SipHash-2-4 of 12345678 00000009 0003 01, with a key of zeros, is 8a8ee160965c5cb5.
  CHECK(group_of(kName, {}, kPort) == Group{{0xef475cb5}, kPort});
  CHECK(address_of(kName, {.first = {0xefc04000}, .prefix_length = 20}) == Ipv4{0xefc04cb5});
  // In a group of updates the number of the selection follows: 12345678 00000009 0003 01 02.
  GroupName updates = kName;
  updates.selection = 2;
  CHECK(address_of(updates) == Ipv4{0xef47874b});
  CHECK(address_of(kName, {.first = {0xe1010100}, .prefix_length = 24}) == Ipv4{0xe10101b5});
}

TEST_CASE("group address: each part of the name counts") {
  std::set<Ipv4> addresses{address_of(kName)};
  const auto is_new = [&](auto change) {
    GroupName name = kName;
    change(name);
    return addresses.insert(address_of(name)).second;
  };
  CHECK(is_new([](GroupName& n) { n.job = 0x12345679; }));
  CHECK(is_new([](GroupName& n) { n.epoch = 10; }));
  CHECK(is_new([](GroupName& n) { n.sender = 4; }));
  CHECK(is_new([](GroupName& n) { n.tree = 2; }));
  // A group of updates has other members than the group of results.
  CHECK(is_new([](GroupName& n) { n.selection = 0; }));
  CHECK(is_new([](GroupName& n) { n.selection = 7; }));
}

TEST_CASE("group address: names spread over the whole range, and stay in it") {
  constexpr GroupRange kRange{.first = {0xef470100}, .prefix_length = 24};
  std::set<Ipv4> addresses;
  for (std::uint16_t sender = 0; sender < 1024; ++sender) {
    for (std::uint8_t tree = 0; tree < 4; ++tree) {
      const Group group =
          group_of({.job = 7, .epoch = 1, .sender = sender, .tree = tree}, kRange, kPort);
      REQUIRE(is_valid(group));
      REQUIRE(group.address.value >> 8 == kRange.first.value >> 8);
      addresses.insert(group.address);
    }
  }
  CHECK(addresses.size() == 256);
}

}  // namespace
}  // namespace gradplane::port
