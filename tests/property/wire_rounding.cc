// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Sums whose wire types are narrower than the trainers' types: how large errors are, and that
// `carry` keeps rounding errors.
#include <algorithm>
#include <vector>

#include "tests/property/tolerant_lab.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::tolerant_lab;

namespace {

/// So many rounds that errors which are not carried are clearly larger than those of one round.
constexpr std::uint32_t kRounds = 80;

/// Two exact blocks in fp32, then 20 blocks in each wire type, and a block that two types share.
api::BucketBounds mixed_bucket(float bound) {
  api::BucketBounds bucket = bucket_of(1, {{2 * kBlockElements, 0},
                                           {20 * kBlockElements + 40, bound},
                                           {20 * kBlockElements, bound},
                                           {20 * kBlockElements + 7, bound}});
  for (std::size_t t = 0; t < kWireTypes.size(); ++t) bucket.tensors[t].wire = kWireTypes[t];
  return bucket;
}

/// A tree with relays that have ranks: 0 is the parent of 1 and 2, and 1 of 3 and 4.
api::Plan ranked_relays() {
  api::Plan plan = sim::sharded(5);
  plan.trees.assign(1, {.weight = 1, .root = 0, .parent = {api::kNoNode, 0, 0, 1, 1}});
  return plan;
}

/// Puts two ranks on each host, so that a leaf sums before it sends.
api::Plan crowded(api::Plan plan) {
  std::uint16_t rank = 0;
  for (api::Member& member : plan.members) {
    if (member.ranks.empty()) continue;
    member.ranks = {rank, static_cast<std::uint16_t>(rank + 1)};
    rank = static_cast<std::uint16_t>(rank + 2);
  }
  return plan;
}

std::vector<api::Plan> plans() {
  return {sim::star(4),    sim::sharded(4),       sim::two_level_tree(2, 2),
          ranked_relays(), crowded(sim::star(3)), crowded(ranked_relays())};
}

Scenario rounding_scenario(Compensation compensation, const api::Plan& plan, float bound) {
  Scenario s = lab_scenario(compensation, {mixed_bucket(bound)}, kRounds);
  s.plan = plan;
  s.tolerance.rounds_off = true;
  s.link.delay = Duration::us(100);
  return s;
}

}  // namespace

TEST_CASE("a sum is off by what its nodes round, and replicas are alike") {
  const auto compensation = GENERATE(Compensation::kZero, Compensation::kRescale);
  for (const api::Plan& plan : plans()) {
    Scenario s = rounding_scenario(compensation, plan, 0);
    s.rounds.resize(6);
    s.link.loss = 0.05;
    const Outcome outcome = run(s);
    INFO(plan.members.size() << " nodes, " << plan.trees.size() << " trees");
    CHECK(outcome.failure == "");
    CHECK(outcome.counters.payload_bytes_saved > outcome.counters.payload_bytes_sent / 2);
    CHECK(outcome.counters.blocks_carried == 0);
  }
}

TEST_CASE("with carry the errors of many rounds are no more than those of one") {
  for (const api::Plan& plan : plans()) {
    Scenario s = rounding_scenario(Compensation::kCarry, plan, 0);
    s.multicast = plan.trees.size() == 1;
    const Outcome outcome = run(s);
    INFO(plan.members.size() << " nodes, " << plan.trees.size() << " trees");
    CHECK(outcome.failure == "");
    CHECK(outcome.counters.blocks_carried > kRounds);
    CHECK(outcome.counters.carry_dropped == 0);
  }
}

TEST_CASE("with carry nothing is lost where blocks are both missing and rounded") {
  std::uint64_t missing = 0;
  for (const api::Plan& plan : plans()) {
    Scenario s = rounding_scenario(Compensation::kCarry, plan, 0.2F);
    s.link.loss = 0.02;
    s.tolerance.slack = Duration::us(100);
    add_closing_rounds(s);
    const Outcome outcome = run(s);
    INFO(plan.members.size() << " nodes, " << plan.trees.size() << " trees");
    CHECK(outcome.failure == "");
    missing += outcome.counters.blocks_missing;
  }
  CHECK(missing > 100);
}

TEST_CASE("a host that does not know the bucket yet takes what others narrow, and sends what is") {
  for (const api::Plan& plan : plans()) {
    Scenario s = rounding_scenario(Compensation::kCarry, plan, 0);
    const std::size_t member = plan.members.size() - 1;
    for (const std::size_t late : {std::size_t{0}, std::size_t{1}, member}) {
      s.tolerance.installations = {
          {.member = late, .bucket = 1, .after = late == 1 ? Duration::max() : Duration::ms(20)}};
      const Outcome outcome = run(s);
      INFO(plan.members.size() << " nodes, " << plan.trees.size() << " trees, late " << late);
      CHECK(outcome.failure == "");
      CHECK(outcome.counters.payload_bytes_saved > 0);
    }
  }
}
