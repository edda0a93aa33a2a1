// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Whole engines on a switch that copies for groups: what leaves the root leaves it once, and a slow
// receiver holds nobody else up.
#include <algorithm>

#include "dataplane/hop/peer_table.h"
#include "tests/sim/cluster.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::sim;

namespace {

constexpr std::uint64_t kRate = 100'000'000;
constexpr std::uint32_t kElements = 1 << 20;  // 4 MiB
constexpr std::size_t kWarmUp = 8;            // small rounds
constexpr std::uint16_t kReceivers = 7;

/// Node 0 has a rank, which sends to one on each other node.
Scenario broadcasts() {
  Scenario s;
  s.seed = 1;
  s.plan = {.epoch = 3, .activation_round = 0, .members = {}, .trees = {}};
  api::Tree tree{.weight = 1, .root = 0, .parent = {}};
  for (std::uint16_t n = 0; n <= kReceivers; ++n) {
    s.plan.members.push_back({.node = n, .ranks = {n}});
    tree.parent.push_back(n == 0 ? api::kNoNode : api::NodeId{0});
  }
  s.plan.trees.push_back(tree);
  s.link.bits_per_second = kRate;
  s.link.queue_bytes = 128 << 10;
  s.block_bytes = kDefaultBlockBytes;
  s.round_bytes = kMaxRoundBytes;
  s.in_flight = 1;
  s.compute_max = {};
  s.multicast = true;
  const RoundPlan large{.type = ElementType::kFloat32,
                        .elements = kElements,
                        .operation = Operation::kBroadcast,
                        .source = 0};
  RoundPlan small = large;
  small.elements /= 16;
  s.rounds.assign(kWarmUp, small);
  s.rounds.push_back(large);
  return s;
}

double seconds_over(std::uint64_t bits_per_second) {
  std::size_t bytes = 0;
  for (const RoundPlan& round : broadcasts().rounds) {
    const std::size_t blocks = (round.elements * 4 + kDefaultBlockBytes - 1) / kDefaultBlockBytes;
    bytes += blocks * (kDefaultBlockBytes + hop::kWireOverheadBytes);
  }
  return static_cast<double>(bytes) * 8 / static_cast<double>(bits_per_second);
}

/// Of what one receiver's copies take over a link of this rate.
double over_bound(const Outcome& o, std::uint64_t bits_per_second) {
  return (o.ended - Instant()).to_seconds() / seconds_over(bits_per_second);
}

}  // namespace

TEST_CASE("seven receivers take little longer than one where the switch copies") {
  Scenario s = broadcasts();
  const Outcome copied = run(s);
  REQUIRE(copied.failure == "");
  s.multicast = false;
  const Outcome alone = run(s);
  REQUIRE(alone.failure == "");
  // The first rounds go to each alone, before trials are answered.
  CHECK(over_bound(copied, kRate) < 3);
  CHECK(over_bound(alone, kRate) > 6.5);
  CHECK(copied.counters.blocks_sent * 3 < alone.counters.blocks_sent);
}

TEST_CASE("a slow receiver takes as long as its link, whatever the group does") {
  constexpr std::uint64_t kSlow = 30'000'000;
  Scenario s = broadcasts();
  s.paced = false;  // nobody knows the rates
  s.link.pair_links.push_back({.from = 0, .to = 4, .bits_per_second = kSlow});
  const Outcome o = run(s);
  REQUIRE(o.failure == "");
  CHECK(over_bound(o, kSlow) < 2);
}

TEST_CASE("a receiver that loses much costs the others little") {
  Scenario s = broadcasts();
  s.link.host_faults.push_back({.host = 4, .loss_received = 0.2});
  const Outcome o = run(s);
  REQUIRE(o.failure == "");
  CHECK(over_bound(o, kRate) < 4);
}
