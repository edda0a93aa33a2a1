// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <array>
#include <vector>

#include "dataplane/port/dpdk/neighbours.h"
#include "tests/support/catch.h"

namespace gradplane::port {
namespace {

constexpr Ipv4 kUs{0x0a4d0001};
constexpr Ipv4 kPeer{0x0a4d0002};
constexpr Ipv4 kGateway{0x0a4d00fe};
constexpr Ipv4 kFar{0x08080808};
constexpr MacAddress kMac{{2, 0, 0, 0, 0, 2}};
constexpr MacAddress kOtherMac{{2, 0, 0, 0, 0, 3}};
using Trust = Neighbours::Trust;

SubnetOptions options(std::uint8_t prefix_length = 24, Ipv4 gateway = kGateway) {
  return {.address = kUs, .prefix_length = prefix_length, .gateway = gateway, .hash_seed = 42};
}

std::vector<Neighbours::Question> due(Neighbours& table, Instant now) {
  std::array<Neighbours::Question, 64> out;
  const std::size_t count = table.due(now, out);
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count)};
}

Instant at(Duration since_start) {
  return Instant::from_ns(0) + since_start;
}

TEST_CASE("neighbours: the next hop") {
  const Neighbours table(options());
  CHECK(table.next_hop(kPeer) == kPeer);
  CHECK(table.next_hop(kFar) == kGateway);
  CHECK_FALSE(table.next_hop(kUs));
  CHECK_FALSE(table.next_hop(Ipv4{0x0a4d0000}));
  CHECK_FALSE(table.next_hop(Ipv4{0x0a4d00ff}));
  CHECK_FALSE(table.next_hop(Ipv4{0xe0000001}));
  CHECK_FALSE(table.next_hop(Ipv4{0xffffffff}));
  const Neighbours lonely(options(24, Ipv4{}));
  CHECK_FALSE(lonely.next_hop(kFar));
  const Neighbours pair(options(31, Ipv4{}));
  CHECK(pair.next_hop(Ipv4{0x0a4d0000}) == Ipv4{0x0a4d0000});
}

TEST_CASE("neighbours: an unknown one is asked for a bounded number of times, then again on use") {
  Neighbours table(options());
  CHECK(table.resolve(kPeer, at(Duration::ms(1))) == nullptr);
  std::size_t questions = 0;
  Instant last;
  std::vector<Duration> pauses;
  for (int ms = 1; ms < 20000; ++ms) {
    for (const Neighbours::Question& q : due(table, at(Duration::ms(ms)))) {
      CHECK(q.target == kPeer);
      CHECK_FALSE(q.ask_only);
      if (questions++ > 0) pauses.push_back(at(Duration::ms(ms)) - last);
      last = at(Duration::ms(ms));
    }
  }
  CHECK(questions == kMaxResolveAttempts);
  for (std::size_t i = 1; i < pauses.size(); ++i) CHECK(pauses[i] == pauses[i - 1] * 2);
  CHECK(table.next_deadline() == Instant::never());
  CHECK(table.resolve(kPeer, at(Duration::seconds(30))) == nullptr);
  CHECK(due(table, at(Duration::seconds(30))).size() == 1);
}

TEST_CASE("neighbours: an answer resolves") {
  Neighbours table(options());
  table.resolve(kPeer, at(Duration::ms(1)));
  table.learn(kPeer, kMac, Trust::kForUs, at(Duration::ms(2)));
  const MacAddress* mac = table.resolve(kPeer, at(Duration::ms(3)));
  REQUIRE(mac != nullptr);
  CHECK(*mac == kMac);
  CHECK(due(table, at(Duration::ms(500))).empty());
}

TEST_CASE("neighbours: who may teach us what") {
  Neighbours table(options());
  const Instant now = at(Duration::ms(1));
  table.learn(kPeer, kMac, Trust::kKnownOnly, now);
  CHECK(table.known_count() == 0);
  table.learn(kPeer, kMac, Trust::kForUs, now);
  CHECK(table.known_count() == 1);
  table.learn(kPeer, kOtherMac, Trust::kKnownOnly, now);
  CHECK(*table.resolve(kPeer, now) == kOtherMac);
  table.learn(kFar, kMac, Trust::kForUs, now);
  table.learn(kUs, kMac, Trust::kForUs, now);
  table.learn(Ipv4{0x0a4d0003}, kBroadcastMac, Trust::kForUs, now);
  table.learn(Ipv4{0x0a4d0003}, MacAddress{}, Trust::kForUs, now);
  CHECK(table.known_count() == 1);
  // The source address of a datagram does not prove where that host is.
  table.confirm(kPeer, kMac, now);
  CHECK(*table.resolve(kPeer, now) == kOtherMac);
  table.confirm(Ipv4{0x0a4d0004}, kMac, now);
  CHECK(table.known_count() == 1);
}

// Runs the clock to `end` and sends to the peer every 100 ms. Returns the ARP queries.
std::vector<Neighbours::Question> run(Neighbours& table, Duration from, Duration end, bool uses,
                                      bool hears) {
  std::vector<Neighbours::Question> all;
  for (Duration t = from; t < end; t += Duration::ms(100)) {
    if (uses) table.resolve(kPeer, at(t));
    if (hears) table.confirm(kPeer, kMac, at(t));
    for (const auto& q : due(table, at(t))) all.push_back(q);
  }
  return all;
}

TEST_CASE("neighbours: traffic keeps one fresh without questions") {
  Neighbours table(options());
  table.learn(kPeer, kMac, Trust::kForUs, at(Duration::ms(1)));
  CHECK(run(table, Duration::ms(100), Duration::seconds(300), true, true).empty());
  CHECK(table.resolve(kPeer, at(Duration::seconds(300))) != nullptr);
}

TEST_CASE("neighbours: a silent one in use is asked alone, then everybody, then forgotten") {
  Neighbours table(options());
  table.learn(kPeer, kMac, Trust::kForUs, at(Duration::ms(0)));
  const auto questions = run(table, Duration::ms(0), Duration::seconds(33), true, false);
  REQUIRE(questions.size() == kMaxNeighbourProbes);
  CHECK(questions.front().ask_only == kMac);
  CHECK_FALSE(questions.back().ask_only);
  CHECK(table.known_count() == 1);  // the entry is used until the last answer is overdue
  run(table, Duration::seconds(33), Duration::seconds(34), false, false);
  CHECK(table.known_count() == 0);
}

TEST_CASE("neighbours: an answer to a probe makes it fresh again") {
  Neighbours table(options());
  table.learn(kPeer, kMac, Trust::kForUs, at(Duration::ms(0)));
  REQUIRE(run(table, Duration::ms(0), Duration::seconds(31), true, false).size() == 1);
  table.learn(kPeer, kMac, Trust::kForUs, at(Duration::seconds(31)));
  CHECK(run(table, Duration::seconds(31), Duration::seconds(60), true, false).empty());
}

TEST_CASE("neighbours: one that nobody uses is not asked, and forgotten in the end") {
  Neighbours table(options());
  table.learn(kPeer, kMac, Trust::kForUs, at(Duration::ms(0)));
  CHECK(run(table, Duration::ms(0), Duration::seconds(500), false, false).empty());
  CHECK(table.known_count() == 1);
  // The first use after a long silence queries at once, and sends meanwhile.
  CHECK(table.resolve(kPeer, at(Duration::seconds(500))) != nullptr);
  CHECK(due(table, at(Duration::seconds(500))).size() == 1);
  Neighbours other(options());
  other.learn(kPeer, kMac, Trust::kForUs, at(Duration::ms(0)));
  run(other, Duration::ms(0), Duration::seconds(601), false, false);
  CHECK(other.known_count() == 0);
}

TEST_CASE("neighbours: traffic from behind the gateway keeps the gateway fresh") {
  Neighbours table(options());
  table.learn(kGateway, kMac, Trust::kForUs, at(Duration::ms(0)));
  for (int s = 0; s < 200; ++s) {
    REQUIRE(table.resolve(kGateway, at(Duration::seconds(s))) != nullptr);
    table.confirm(kFar, kMac, at(Duration::seconds(s)));
    REQUIRE(due(table, at(Duration::seconds(s))).empty());
  }
}

TEST_CASE("neighbours: a flood of strangers pushes out nobody that we send to") {
  SubnetOptions wide = options(8);
  Neighbours table(wide);
  const Instant now = at(Duration::seconds(100));
  for (std::uint32_t i = 0; i < kMaxNodes; ++i) {
    const Ipv4 peer{0x0a010000 + i};
    table.learn(peer, kMac, Trust::kForUs, now);
    REQUIRE(table.resolve(peer, now) != nullptr);
  }
  for (std::uint32_t i = 0; i < 100000; ++i) {
    table.learn(Ipv4{0x0a800000 + i}, kOtherMac, Trust::kForUs, now + Duration::seconds(1));
  }
  for (std::uint32_t i = 0; i < kMaxNodes; ++i) {
    const MacAddress* mac = table.resolve(Ipv4{0x0a010000 + i}, now + Duration::seconds(2));
    REQUIRE(mac != nullptr);
    REQUIRE(*mac == kMac);
  }
  CHECK(table.known_count() <= kNeighbourSets * kNeighbourWays);
}

TEST_CASE("neighbours: a stranger does not get into a table that is all in use") {
  Neighbours table(options(8));
  const Instant now = at(Duration::seconds(100));
  for (std::uint32_t i = 0; i < 20000; ++i) {
    const Ipv4 peer{0x0a010000 + i};
    table.resolve(peer, now);
    table.learn(peer, kMac, Trust::kForUs, now);
  }
  REQUIRE(table.known_count() == kNeighbourSets * kNeighbourWays);
  const Ipv4 stranger{0x0a800001};
  table.learn(stranger, kOtherMac, Trust::kForUs, now + Duration::seconds(1));
  CHECK(table.resolve(stranger, now + Duration::seconds(1)) == nullptr);
}

TEST_CASE("neighbours: more questions than fit are asked the next time") {
  Neighbours table(options(8));
  const Instant now = at(Duration::seconds(1));
  for (std::uint32_t i = 0; i < 100; ++i) table.resolve(Ipv4{0x0a010001 + i}, now);
  CHECK(due(table, now).size() == 64);
  CHECK(table.next_deadline() <= now);
  CHECK(due(table, now).size() == 36);
  CHECK(table.next_deadline() > now);
}

}  // namespace
}  // namespace gradplane::port
