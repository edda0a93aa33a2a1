// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// A site that is cut off for a while, and then comes back.
#include <algorithm>

#include "tests/property/tolerant_lab.h"
#include "tests/support/catch.h"
#include "tests/support/plan_networks.h"

using namespace gradplane;
using namespace gradplane::tolerant_lab;

namespace {

constexpr std::uint16_t kSites = 5;
constexpr std::uint16_t kCutSite = 4;
constexpr std::uint32_t kRounds = 40;
constexpr Duration kAbsentAfter = Duration::ms(1500);
/// Shorter than a round. The share of it that some relays have is shorter than their round trip.
constexpr Duration kShortAbsence = Duration::ms(150);

/// Every two sites have a link, with delays from 5 to 40 ms.
plan::Network mesh() {
  plan::Network network = testing::sites(kSites);
  for (std::uint16_t a = 0; a < kSites; ++a) {
    for (std::uint16_t b = a + 1; b < kSites; ++b) {
      const Duration rtt = Duration::ms(10 + 70 * ((a * 3 + b * 7) % 5) / 4);
      testing::connect(network, a, b, 20 * testing::kMbit, 20 * testing::kMbit, rtt);
    }
  }
  return network;
}

/// Two trees. In the first one the site that is cut off is a leaf, and in the second one site 3 is
/// its child. It is the root of neither.
api::Plan two_trees() {
  api::Plan plan{.epoch = 3, .activation_round = 0, .members = {}, .trees = {}};
  for (std::uint16_t n = 0; n < kSites; ++n) plan.members.push_back({.node = n, .ranks = {n}});
  plan.trees.push_back({.weight = 1, .root = 0, .parent = {api::kNoNode, 0, 1, 1, 2}});
  plan.trees.push_back({.weight = 2, .root = 1, .parent = {1, api::kNoNode, 0, kCutSite, 1}});
  return plan;
}

Scenario cut_scenario(Duration begin, Duration length) {
  Scenario s = lab_scenario(Compensation::kCarry, {plain_bucket(1)}, kRounds);
  s.plan = two_trees();
  s.link.sites = {{{}, mesh()}};
  s.link.delay = {};
  s.tolerance.layout = sim::Coding::Layout::kSpread;
  s.tolerance.absent_after = kAbsentAfter;
  s.link.host_faults.push_back(
      {.host = kCutSite, .cut_from = Instant() + begin, .cut_until = Instant() + begin + length});
  s.stall_after = Duration::seconds(10);
  s.limit = Duration::seconds(120);
  add_closing_rounds(s);
  return s;
}

std::size_t rounds_ended(const Outcome& outcome, Instant from, Instant until) {
  return static_cast<std::size_t>(
      std::count_if(outcome.round_ends.begin(), outcome.round_ends.end(),
                    [&](Instant end) { return end >= from && end < until; }));
}

}  // namespace

TEST_CASE("a site that is cut off is absent, and takes part again when its links are back") {
  // Some cuts begin in the middle of a round, which takes about 300 ms.
  const Duration begin = Duration::ms(1000 + 47 * GENERATE(range(0, 8)));
  const Duration length = Duration::ms(GENERATE(2500, 6000));
  const Scenario s = cut_scenario(begin, length);
  const Outcome outcome = run(s);
  INFO("cut off from " << begin.count_ns() / 1'000'000 << " ms on for "
                       << length.count_ns() / 1'000'000 << " ms");
  CHECK(outcome.failure == "");
  CHECK(count(outcome, CloseReason::kAbsent) > 0);
  // In each tree: the round in which the links fail, the rounds that may follow without the site,
  // and those in which it catches up.
  CHECK(count(outcome, CloseReason::kAbsent) <= 2 * (2 * kMaxLeadRounds + 1));
  CHECK(count(outcome, CloseReason::kFull) >= kRounds / 2);
  // Residuals have come with later rounds; the checker compares what was delivered and submitted.
  CHECK(outcome.counters.blocks_carried > 0);
  // No rank waits for long once the links are back.
  const Instant back = Instant() + begin + length;
  CHECK(rounds_ended(outcome, back, back + Duration::seconds(8)) >= kMaxLeadRounds);
}

TEST_CASE("nobody is absent while all links carry, however short absent_after is") {
  Scenario s = cut_scenario(Duration::seconds(100), Duration::ms(1));
  s.tolerance.absent_after = kShortAbsence;
  const Outcome outcome = run(s);
  CHECK(outcome.failure == "");
  CHECK(count(outcome, CloseReason::kAbsent) == 0);
}

TEST_CASE("a site comes back although a round takes longer than absent_after") {
  Scenario s = cut_scenario(Duration::ms(1000 + 47 * GENERATE(0, 3, 6)), Duration::ms(2500));
  s.tolerance.absent_after = kShortAbsence * GENERATE(1, 2);
  const Outcome outcome = run(s);
  CHECK(outcome.failure == "");
  CHECK(count(outcome, CloseReason::kAbsent) > 0);
  CHECK(count(outcome, CloseReason::kAbsent) <= 2 * (2 * kMaxLeadRounds + 1));
  CHECK(count(outcome, CloseReason::kFull) >= kRounds / 2);
}

TEST_CASE("without absent_after everybody waits for the site that is cut off") {
  Scenario s = cut_scenario(Duration::seconds(1), Duration::ms(1500));
  s.tolerance.absent_after = {};
  const Outcome outcome = run(s);
  CHECK(outcome.failure == "");
  CHECK(count(outcome, CloseReason::kAbsent) == 0);
  CHECK(rounds_ended(outcome, Instant() + Duration::ms(1600), Instant() + Duration::ms(2500)) == 0);
}
