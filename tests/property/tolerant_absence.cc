// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Ranks that are behind or cut off while rounds close without them.
#include "tests/property/tolerant_lab.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::tolerant_lab;

namespace {

/// Nodes 0 to 2 are the root of one tree each, and nodes 3 to 5 have ranks 0 to 2.
api::Plan three_roots() {
  api::Plan plan{.epoch = 5, .activation_round = 0, .members = sim::members(3, 3), .trees = {}};
  for (std::uint16_t root = 0; root < 3; ++root) {
    api::Tree tree{.weight = 1, .root = root, .parent = {}};
    for (std::uint16_t n = 0; n < 6; ++n) tree.parent.push_back(n < 3 ? api::kNoNode : root);
    plan.trees.push_back(tree);
  }
  return plan;
}

/// Loses all packets from and to a node, from this round on, until two seconds have passed.
void cut_off(Scenario& s, std::uint16_t node, std::uint32_t first) {
  const std::uint32_t begin = s.plan.activation_round;
  s.link.lose = [=](std::uint16_t from, std::uint16_t to, const testing::SeenPacket& h) {
    const bool early = h.timestamp_us < 2'000'000;  // from the sender's clock
    return (from == node || to == node) && h.round - begin >= first && early;
  };
}

}  // namespace

TEST_CASE("a rank that is behind is sent what it can take, whatever the plan and the order") {
  constexpr std::uint32_t kBuckets = 6;  // in one iteration; in forward order the newest goes first
  const bool forward = GENERATE(false, true);
  api::Plan relayed = sim::star(3);
  relayed.trees[0].parent = {api::kNoNode, 0, 1, 1};
  const api::Plan plan = GENERATE_COPY(sim::star(3), sim::sharded(3), relayed);
  const bool two_on_a_host = GENERATE(false, true);
  std::vector<api::BucketBounds> buckets;
  for (std::uint32_t id = 1; id <= kBuckets; ++id) buckets.push_back(plain_bucket(id));
  Scenario s = lab_scenario(Compensation::kCarry, buckets, 0);
  s.plan = plan;
  if (two_on_a_host) s.plan.members.back().ranks.push_back(3);
  s.rounds.clear();
  // There are fewer rounds than slots, so the others never wait for a slot.
  for (std::uint32_t step = 0; step < 2; ++step) {
    for (const api::BucketBounds& bucket : buckets) s.rounds.push_back(sim::round_of(bucket));
  }
  s.forward_order = forward;
  s.tolerance.absent_after = Duration::ms(20);
  s.compute_max_of_rank = {{}, {}, Duration::ms(300), {}};
  INFO("forward " << forward << ", trees " << s.plan.trees.size() << ", two on a host "
                  << two_on_a_host);
  add_closing_rounds(s);
  const Outcome outcome = run(s);
  CHECK(outcome.failure == "");
  // After only two rounds of a bucket, a relay may not close without a host yet.
  const bool has_relay = s.plan.trees[0].parent == relayed.trees[0].parent;
  CHECK((has_relay || count(outcome, CloseReason::kAbsent) > 0));
  CHECK(outcome.counters.drops[static_cast<std::size_t>(hop::Drop::kFutureRound)] == 0);
}

TEST_CASE("nobody gets further ahead of an absent rank than a recovery can make up for") {
  SECTION("one root") {
    Scenario s = lab_scenario(Compensation::kRescale, {plain_bucket(1)}, 40);
    s.plan.activation_round = GENERATE(0U, 0U - 20, 0U - 6);
    s.tolerance.absent_after = Duration::ms(20);
    cut_off(s, 3, 2);
    const Outcome outcome = run(s);
    CHECK(outcome.failure == "");
    CHECK(count(outcome, CloseReason::kAbsent) >= kMaxLeadRounds);
    CHECK(outcome.ended > Instant() + Duration::seconds(2));
  }
  SECTION("three roots, and rounds that have blocks for all of them") {
    Scenario s = lab_scenario(Compensation::kRescale, {plain_bucket(1)}, 40);
    s.plan = three_roots();
    s.tolerance.absent_after = Duration::ms(20);
    cut_off(s, 5, 2);
    const Outcome outcome = run(s);
    CHECK(outcome.failure == "");
    CHECK(count(outcome, CloseReason::kAbsent) >= 3 * kMaxLeadRounds);
    CHECK(outcome.ended > Instant() + Duration::seconds(2));
  }
  SECTION("three roots, and rounds of one block, of which each root sees every third alone") {
    Scenario s = lab_scenario(Compensation::kRescale, {bucket_of(1, {{10, 0.5F}})}, 60);
    s.plan = three_roots();
    s.tolerance.absent_after = Duration::ms(20);
    cut_off(s, 5, 12);
    const Outcome outcome = run(s);
    CHECK(outcome.failure == "");
    CHECK(count(outcome, CloseReason::kAbsent) == 0);
  }
  SECTION("three roots, and rounds of one block between those of all roots") {
    Scenario s =
        lab_scenario(Compensation::kRescale, {plain_bucket(1), bucket_of(2, {{10, 0.5F}})}, 2);
    for (std::uint32_t r = 0; r < 40; ++r) {
      s.rounds.push_back(sim::round_of(s.tolerance.buckets[r % 5 == 4 ? 1 : 0]));
    }
    s.plan = three_roots();
    s.tolerance.absent_after = Duration::ms(20);
    cut_off(s, 5, 12);
    const Outcome outcome = run(s);
    CHECK(outcome.failure == "");
    CHECK(count(outcome, CloseReason::kAbsent) > 0);
  }
}
