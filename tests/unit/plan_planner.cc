// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/planner.h"

#include <string>
#include <vector>

#include "control/plan/validate.h"
#include "dataplane/model/limits.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::plan;

namespace {

constexpr api::NodeId kNone = api::kNoNode;

/// Four workers, nodes 1 to 4, with a rank each. Node 0 may sum.
PlanRequest four_workers(PlanKind planner, std::vector<api::NodeId> candidates) {
  return {.epoch = 3,
          .activation_round = 17,
          .members = {{1, {0}}, {2, {1}}, {3, {2}}, {4, {3}}},
          .planner = planner,
          .root_candidates = std::move(candidates),
          .link_rates = {}};
}

std::vector<std::uint32_t> weights(const api::Plan& plan) {
  std::vector<std::uint32_t> result;
  for (const api::Tree& tree : plan.trees) result.push_back(tree.weight);
  return result;
}

}  // namespace

TEST_CASE("a star has the aggregator as the root of everything") {
  const auto plan = make_plan(four_workers(PlanKind::kStar, {0}));
  REQUIRE(plan.ok());
  CHECK(plan.value().epoch == 3);
  CHECK(plan.value().activation_round == 17);
  REQUIRE(plan.value().members.size() == 5);
  CHECK(plan.value().members[0].node == 0);
  CHECK(plan.value().members[0].ranks.empty());
  REQUIRE(plan.value().trees.size() == 1);
  CHECK(plan.value().trees[0].root == 0);
  CHECK(plan.value().trees[0].parent == std::vector<api::NodeId>{kNone, 0, 0, 0, 0});
}

TEST_CASE("a star without candidates has the fastest worker as its root") {
  PlanRequest request = four_workers(PlanKind::kStar, {});
  request.link_rates = {{1, 100}, {2, 400}, {3, 400}, {4, 100}};
  const auto plan = make_plan(request);
  REQUIRE(plan.ok());
  CHECK(plan.value().trees[0].root == 2);
  CHECK(plan.value().trees[0].parent == std::vector<api::NodeId>{2, kNone, 2, 2});
}

TEST_CASE("sharded over the workers makes each of them the root of an equal share") {
  const auto plan = make_plan(four_workers(PlanKind::kSharded, {}));
  REQUIRE(plan.ok());
  CHECK(plan.value().members.size() == 4);
  REQUIRE(plan.value().trees.size() == 4);
  CHECK(weights(plan.value()) == std::vector<std::uint32_t>{1, 1, 1, 1});
  CHECK(plan.value().trees[2].root == 3);
  CHECK(plan.value().trees[2].parent == std::vector<api::NodeId>{3, 3, kNone, 3});
}

TEST_CASE("sharded over aggregators leaves the others out of an aggregator's tree") {
  const auto plan = make_plan(four_workers(PlanKind::kSharded, {9, 0, 9}));
  REQUIRE(plan.ok());
  REQUIRE(plan.value().members.size() == 6);
  REQUIRE(plan.value().trees.size() == 2);
  CHECK(plan.value().trees[0].root == 0);
  CHECK(plan.value().trees[0].parent == std::vector<api::NodeId>{kNone, 0, 0, 0, 0, kNone});
  CHECK(plan.value().trees[1].root == 9);
  CHECK(plan.value().trees[1].parent == std::vector<api::NodeId>{kNone, 9, 9, 9, 9, kNone});
}

TEST_CASE("shares follow the link rates") {
  PlanRequest request = four_workers(PlanKind::kSharded, {});
  request.link_rates = {{1, 100'000'000'000}, {2, 25'000'000'000}, {3, 50'000'000'000}};
  auto plan = make_plan(request);  // node 4 has no rate, so it counts as the slowest
  REQUIRE(plan.ok());
  CHECK(weights(plan.value()) == std::vector<std::uint32_t>{4, 1, 2, 1});

  request.link_rates = {{1, UINT64_MAX}, {2, 1}, {3, 0}, {4, UINT64_MAX}};
  plan = make_plan(request);
  REQUIRE(plan.ok());
  CHECK(weights(plan.value()) == std::vector<std::uint32_t>{1000, 1, 1, 1000});
}

TEST_CASE("of too many candidates the fastest are roots") {
  PlanRequest request;
  request.planner = PlanKind::kSharded;
  for (std::uint16_t i = 0; i < 100; ++i) {
    request.members.push_back({i, {i}});
    request.link_rates.push_back({i, 1000u + i});
  }
  const auto plan = make_plan(request);
  REQUIRE(plan.ok());
  REQUIRE(plan.value().trees.size() == kMaxTrees);
  CHECK(plan.value().trees.front().root == 100 - kMaxTrees);
  CHECK(plan.value().trees.back().root == 99);
}

TEST_CASE("one node alone is a plan") {
  for (const PlanKind kind : {PlanKind::kStar, PlanKind::kSharded}) {
    PlanRequest request;
    request.members = {{5, {1, 0}}};
    request.planner = kind;
    const auto plan = make_plan(request);
    REQUIRE(plan.ok());
    CHECK(plan.value().members[0].ranks == std::vector<std::uint16_t>{0, 1});
    CHECK(plan.value().trees[0].parent == std::vector<api::NodeId>{kNone});
  }
}

TEST_CASE("members that make no job are refused by name") {
  PlanRequest request;
  CHECK(make_plan(request).error().message.find("no node hosts a rank") != std::string::npos);
  request.root_candidates = {0};
  CHECK_FALSE(make_plan(request).ok());
  request.members = {{1, {0}}, {2, {0}}};
  CHECK(make_plan(request).error().message.find("hosted twice") != std::string::npos);
  request.members = {{1, {0}}, {2, {kMaxRanks}}};
  CHECK(make_plan(request).error().message == "node 2 hosts rank 1024; the last one is 1023");
  request.members = {{1, {0}}, {1, {1}}};
  CHECK(make_plan(request).error().message == "node 1 is a member twice");
  request.members = {{1, {0}}};
  request.root_candidates = {api::kNoNode};
  CHECK_FALSE(make_plan(request).ok());
}
