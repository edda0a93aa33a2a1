// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The selections of plans over one cycle, for random members and links.
#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "control/plan/planner.h"
#include "control/plan/validate.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/operation.h"
#include "tests/property/seeds.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::plan;

namespace {

PlanRequest drawn_request(std::mt19937_64& random) {
  PlanRequest request;
  request.planner = PlanKind::kSharded;
  const std::size_t members = 2 + random() % (kMaxTrees - 1);
  api::NodeId node = 0;
  for (std::size_t m = 0; m < members; ++m) {
    node = static_cast<api::NodeId>(node + 1 + random() % 5);
    request.members.push_back({node, {static_cast<std::uint16_t>(m)}});
    if (random() % 4 > 0)
      request.link_rates.push_back({node, 1'000'000 + random() % 1'000'000'000});
  }
  request.selections = SelectionsWanted{
      .receivers_ppm = static_cast<std::uint32_t>(1 + random() % 1'000'000),
      .freshness = static_cast<std::uint32_t>(random() % kMaxSelections),
      .replication = random() % 2 == 0 ? Replication::kNetwork : Replication::kSender,
      .choice =
          random() % 4 == 0 ? SelectionsWanted::Choice::kRandom : SelectionsWanted::Choice::kLinks};
  return request;
}

/// The least number of receivers that is at least the wanted share of `others`.
std::size_t least_of(std::uint32_t receivers_ppm, std::size_t others) {
  std::size_t least = 0;
  while (least * 1'000'000 < others * receivers_ppm) ++least;
  return least;
}

}  // namespace

TEST_CASE("in a cycle of selections each pair meets, and each update has its receivers") {
  testing::Seeds(60).each("plan_selections", [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    PlanRequest request = drawn_request(random);
    const auto made = make_plan(request);
    REQUIRE(made.ok());
    const api::Plan& plan = made.value();
    REQUIRE(validate(plan).ok());
    const std::size_t members = plan.members.size();
    REQUIRE(members == request.members.size());
    REQUIRE(plan.selections.size() == request.selections->freshness + 1);
    std::set<std::pair<api::NodeId, api::NodeId>> met;
    for (const api::Selection& selection : plan.selections) {
      REQUIRE(selection.receivers.size() == members);
      for (std::size_t m = 0; m < members; ++m) {
        CHECK(selection.receivers[m].size() >=
              least_of(request.selections->receivers_ppm, members - 1));
        for (const api::NodeId to : selection.receivers[m]) met.insert({plan.members[m].node, to});
      }
    }
    CHECK(met.size() == members * (members - 1));
    std::shuffle(request.members.begin(), request.members.end(), random);
    std::shuffle(request.link_rates.begin(), request.link_rates.end(), random);
    CHECK(make_plan(request).value().selections == plan.selections);
  });
}
