// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Receivers of a group that are slow, lose many packets, or begin rounds late. Each run is compared
// with one that is the same until the receiver changes.
#include <algorithm>

#include "tests/property/broadcast_scenarios.h"
#include "tests/property/seeds.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::sim;
using gradplane::testing::kSanitized;

namespace {

constexpr std::uint16_t kOther = 4;  // the receiver that differs from the others
constexpr double kLoss = 0.2;

/// Ranks run the small rounds one after the other, and may have several large ones in flight.
struct Case {
  std::size_t warm_up = 8;
  std::size_t rounds = 1;
  std::uint32_t elements = 1 << 18;  // 1 MiB of fp32
  std::size_t in_flight = 1;
};

Scenario scenario_of(const Case& c, bool paced) {
  Scenario s = broadcasts(c.warm_up);
  s.rounds.insert(s.rounds.end(), c.rounds, broadcast_of(c.elements));
  s.in_flight = c.in_flight;
  s.paced = paced;
  return s;
}

/// The time of the rounds after the small ones: for all receivers but one, and for that one.
struct Times {
  double others = 0;
  double other = 0;
};

Times times_of(const Outcome& o, std::size_t warm_up) {
  const Instant begin = o.round_ends.at(warm_up - 1);
  Instant last;
  for (std::size_t rank = 1; rank <= kReceivers; ++rank) {
    if (rank != kOther) last = std::max(last, o.rank_ends.at(rank).back());
  }
  return {(last - begin).to_seconds(), (o.rank_ends.at(kOther).back() - begin).to_seconds()};
}

/// Gives the other receiver a link of this rate; 0: its link loses a fifth of the packets instead.
Scenario with_other(Scenario s, std::uint64_t bits_per_second, Instant since) {
  if (bits_per_second > 0) {
    s.link.pair_links.push_back(
        {.from = 0, .to = kOther, .bits_per_second = bits_per_second, .since = since});
  } else {
    s.link.host_faults.push_back({.host = kOther, .loss_received = kLoss, .lossy_from = since});
  }
  return s;
}

/// The others may wait for that receiver only as long as a group waits for a member.
void check_others(const Case& c) {
  for (const bool paced : {true, false}) {
    const Scenario s = scenario_of(c, paced);
    const Outcome clean = run(s);
    REQUIRE(clean.failure == "");
    const double without = times_of(clean, c.warm_up).others;
    CHECK(without < 1.1 * seconds_over(s, kBroadcastRate, c.warm_up));
    for (const std::uint64_t rate : {10'000'000, 60'000'000, 0}) {
      const Outcome o = run(with_other(s, rate, clean.round_ends.at(c.warm_up - 1)));
      REQUIRE(o.failure == "");
      const Times times = times_of(o, c.warm_up);
      const double link = seconds_over(s, rate > 0 ? rate : kBroadcastRate, c.warm_up);
      CAPTURE(paced, rate, without, times.others, times.other, link);
      CHECK(times.others < 1.3 * without + 0.02);
      CHECK(times.other < 1.4 * link + without);
      CHECK(o.counters.group_members_deaf == 0);
    }
  }
}

}  // namespace

TEST_CASE("a receiver that becomes slow or loses a fifth holds up none of the others") {
  check_others({});
}

TEST_CASE("nor does it where rounds are in flight together") {
  if (kSanitized) return;
  check_others({.warm_up = 24, .rounds = 4, .elements = 1 << 16, .in_flight = 4});
}

TEST_CASE("who begins a round late gets it by the group, and is back in step in the next one") {
  constexpr std::size_t kRounds = 8;
  for (const bool paced : {true, false}) {
    // All of them are late by up to 150 ms, or two of them.
    for (const std::size_t late : {std::size_t{kReceivers}, std::size_t{2}}) {
      Scenario s = scenario_of({.rounds = kRounds, .elements = 1 << 18}, paced);
      s.compute_max = Duration::ms(150);
      if (late < kReceivers) {
        s.compute_max_of_rank.assign(kReceivers + 1, {});
        std::fill_n(s.compute_max_of_rank.begin() + kOther, late, Duration::ms(150));
      }
      const Outcome o = run(s);
      REQUIRE(o.failure == "");
      CAPTURE(paced, late, o.counters.blocks_sent, o.counters.blocks_to_groups);
      const double sent = times_of(o, 8).others;
      // With a separate copy for each late receiver, a round would take 0.6 s.
      CHECK(sent < 2 * seconds_over(s, kBroadcastRate, 8));
      CHECK(o.counters.blocks_sent < 2 * o.counters.blocks_to_groups);
    }
  }
}
