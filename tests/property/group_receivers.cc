// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Whole engines on a switch that copies for groups. The root sends each block once, and a slow
// receiver does not hold up the others.
#include "tests/property/broadcast_scenarios.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::sim;

namespace {

constexpr std::uint64_t kRate = kBroadcastRate;

/// Small rounds, and one round of 4 MiB.
Scenario broadcasts() {
  Scenario s = sim::broadcasts(8);
  s.rounds.push_back(broadcast_of(1 << 20));
  return s;
}

/// The time of a run, relative to one receiver's copies over a link of this rate.
double over_bound(const Outcome& o, std::uint64_t bits_per_second) {
  return (o.ended - Instant()).to_seconds() / seconds_over(broadcasts(), bits_per_second);
}

}  // namespace

TEST_CASE("where the switch copies, seven receivers take a quarter of the time of copies to each") {
  Scenario s = broadcasts();
  const Outcome copied = run(s);
  REQUIRE(copied.failure == "");
  s.multicast = false;
  const Outcome alone = run(s);
  REQUIRE(alone.failure == "");
  // Blocks of the first rounds go to each receiver alone, until trials are answered.
  CHECK(over_bound(copied, kRate) < 1.7);
  CHECK(over_bound(alone, kRate) > 6.5);
  CHECK(copied.counters.blocks_sent * 4 < alone.counters.blocks_sent);
}

TEST_CASE("a slow receiver takes as long as its link, whatever the group does") {
  constexpr std::uint64_t kSlow = 30'000'000;
  Scenario s = broadcasts();
  s.paced = false;  // no node knows the rates
  s.link.pair_links.push_back({.from = 0, .to = 4, .bits_per_second = kSlow});
  const Outcome o = run(s);
  REQUIRE(o.failure == "");
  CHECK(over_bound(o, kSlow) < 1.5);
}

TEST_CASE("a receiver that loses a fifth holds the others up by a bounded time") {
  Scenario s = broadcasts();
  s.link.host_faults.push_back({.host = 4, .loss_received = 0.2});
  const Outcome o = run(s);
  REQUIRE(o.failure == "");
  CHECK(over_bound(o, kRate) < 2.3);
}
