// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <cstdint>
#include <random>
#include <set>

#include "dataplane/ipc/rounds_in_flight.h"
#include "tests/support/catch.h"
#include "trainer-shim/client/liveness.h"

using namespace gradplane;
using namespace gradplane::client;
using ipc::RoundsInFlight;

TEST_CASE("a beat that stands still for the limit is a dead daemon") {
  Instant now = Instant::from_ns(0);
  Liveness liveness(7, now);
  for (int i = 0; i < 49; ++i) {
    now = now + Duration::ms(100);
    REQUIRE(liveness.look(7, now));
  }
  CHECK_FALSE(liveness.look(7, now + Duration::ms(100)));
}

TEST_CASE("a caller of little patience may ask for an earlier end, but not for any") {
  const auto [asked, in_force] = GENERATE(table<Duration, Duration>({
      {Duration(), kLivenessLimit},
      {Duration::seconds(3), Duration::seconds(3)},
      {Duration::ms(1), kMinLivenessLimit},
      {Duration::seconds(9), Duration::seconds(9)},
  }));
  Instant now = Instant::from_ns(0);
  Liveness liveness(7, now, asked);
  CHECK(liveness.limit() == in_force);
  for (; now + Duration::ms(100) < Instant::from_ns(0) + in_force;) {
    now = now + Duration::ms(100);
    REQUIRE(liveness.look(7, now));
  }
  CHECK_FALSE(liveness.look(7, now + Duration::ms(100)));
}

TEST_CASE("any change of the beat is a sign of life") {
  Instant now = Instant::from_ns(0);
  Liveness liveness(7, now);
  for (std::uint64_t beat : {8, 9, 3, 4, 5, 6}) {
    for (int i = 0; i < 4; ++i) {
      now = now + Duration::seconds(1);
      REQUIRE(liveness.look(beat, now));
    }
  }
}

TEST_CASE("time in which nobody looked accuses nobody") {
  Liveness liveness(7, Instant::from_ns(0));
  CHECK(liveness.look(7, Instant::from_ns(0) + Duration::seconds(1000)));
  CHECK(liveness.look(7, Instant::from_ns(0) + Duration::seconds(2000)));
}

TEST_CASE("rounds in flight follow a set of numbers, whatever the order of completion") {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    RoundsInFlight rounds;
    std::set<std::uint32_t> model;
    for (int step = 0; step < 3000; ++step) {
      const bool full = !model.empty() && rounds.next() - *model.begin() >= kMaxInFlightRounds;
      REQUIRE(rounds.full() == full);
      REQUIRE(rounds.empty() == model.empty());
      if (random() % 2 == 0 && !full) {
        model.insert(rounds.next());
        rounds.submit();
        continue;
      }
      const auto round = static_cast<std::uint32_t>(rounds.next() - random() % 12 + 1);
      REQUIRE(rounds.complete(round) == (model.erase(round) == 1));
    }
  }
}

TEST_CASE("rounds in flight go across 2^32") {
  RoundsInFlight rounds(kMaxInFlightRounds, 0U - 20);
  for (std::uint32_t round = 0U - 20; round != 20; ++round) {
    REQUIRE(rounds.next() == round);
    rounds.submit();
    if (!rounds.full()) continue;
    // Of the two oldest rounds, the newer one completes first.
    const auto oldest = static_cast<std::uint32_t>(round - (kMaxInFlightRounds - 1));
    REQUIRE(rounds.complete(oldest + 1));
    REQUIRE(rounds.full());
    REQUIRE(rounds.complete(oldest));
    REQUIRE_FALSE(rounds.complete(oldest));
    REQUIRE_FALSE(rounds.complete(round + 1));
  }
}
