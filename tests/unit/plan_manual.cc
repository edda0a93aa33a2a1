// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <string>
#include <vector>

#include "control/plan/planner.h"
#include "control/plan/validate.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::plan;

namespace {

constexpr api::NodeId kNone = api::kNoNode;

/// Seven nodes: agg (0) is the root of both trees, r1 (1) and r2 (2) relay, and w3 to w6 train. In
/// the second tree the relays are exchanged.
PlanRequest two_relays() {
  PlanRequest request;
  request.epoch = 3;
  request.activation_round = 17;
  request.members = {{6, {3}}, {3, {0}}, {4, {2, 1}}, {5, {4}}};
  request.planner = PlanKind::kManual;
  request.trees = {{1, 0, {{1, 0}, {2, 0}, {3, 1}, {4, 1}, {5, 2}, {6, 2}}},
                   {2, 0, {{1, 0}, {2, 0}, {3, 2}, {4, 2}, {5, 1}, {6, 1}}}};
  request.node_names = {"agg", "r1", "r2", "w3", "w4", "w5", "w6"};
  return request;
}

std::string why_not(const PlanRequest& request) {
  const auto plan = make_plan(request);
  return plan.ok() ? "" : plan.error().message;
}

}  // namespace

TEST_CASE("a manual plan is the trees that were written down") {
  const auto plan = make_plan(two_relays());
  REQUIRE(plan.ok());
  CHECK(validate(plan.value()).ok());
  CHECK(plan.value().kind == PlanKind::kManual);
  CHECK(plan.value().epoch == 3);
  CHECK(plan.value().activation_round == 17);
  REQUIRE(plan.value().members.size() == 7);
  CHECK(plan.value().members[1].ranks.empty());
  CHECK(plan.value().members[4].ranks == std::vector<std::uint16_t>{1, 2});
  REQUIRE(plan.value().trees.size() == 2);
  CHECK(plan.value().trees[0].parent == std::vector<api::NodeId>{kNone, 0, 0, 1, 1, 2, 2});
  CHECK(plan.value().trees[1].parent == std::vector<api::NodeId>{kNone, 0, 0, 2, 2, 1, 1});
  CHECK(plan.value().trees[1].weight == 2);
}

TEST_CASE("nodes that would pass nothing on are left out") {
  PlanRequest request = two_relays();
  request.trees.pop_back();
  request.members = {{3, {0}}, {4, {1}}};  // all of them are below r1
  const auto plan = make_plan(request);
  REQUIRE(plan.ok());
  std::vector<api::NodeId> nodes;
  for (const api::Member& member : plan.value().members) nodes.push_back(member.node);
  CHECK(nodes == std::vector<api::NodeId>{0, 1, 3, 4});
  CHECK(plan.value().trees[0].parent == std::vector<api::NodeId>{kNone, 0, 1, 1});

  // A node that only the other tree needs is a member, but is not in this tree.
  request.trees.push_back({1, 3, {{4, 2}, {2, 3}}});
  const auto both = make_plan(request);
  REQUIRE(both.ok());
  CHECK(both.value().trees[0].parent == std::vector<api::NodeId>{kNone, 0, kNone, 1, 1});
  CHECK(both.value().trees[1].parent == std::vector<api::NodeId>{kNone, kNone, 3, kNone, 2});
}

TEST_CASE("a relay that trains, and a root that trains, take part") {
  PlanRequest request = two_relays();
  request.trees.pop_back();
  request.members.push_back({0, {5}});
  request.members.push_back({1, {6}});
  const auto plan = make_plan(request);
  REQUIRE(plan.ok());
  CHECK(plan.value().members[0].ranks == std::vector<std::uint16_t>{5});
  CHECK(plan.value().members[1].ranks == std::vector<std::uint16_t>{6});
}

TEST_CASE("a tree that cannot be is told with its number and the node") {
  PlanRequest request = two_relays();
  SECTION("a node with ranks is not in it") {
    request.trees[1].edges.pop_back();
    CHECK(why_not(request) == "tree 1 has no parent for node w6, which hosts ranks of the job");
  }
  SECTION("a way ends before the root") {
    request.trees[0].edges.erase(request.trees[0].edges.begin());
    CHECK(why_not(request) == "tree 0 has no parent for node r1, above node w3");
  }
  SECTION("a circle") {
    request.trees[1].edges[1] = {2, 3};
    CHECK(why_not(request) == "tree 1 goes round in a circle above node w3");
  }
  SECTION("two parents") {
    request.trees[0].edges.push_back({6, 1});
    CHECK(why_not(request) == "tree 0 gives node w6 two parents");
  }
  SECTION("a root with a parent") {
    request.trees[0].edges.push_back({0, 1});
    CHECK(why_not(request) == "tree 0 gives its root node agg a parent");
  }
  SECTION("no trees, no ranks") {
    request.trees.clear();
    CHECK(why_not(request) == "no trees are given");
    request = two_relays();
    request.members = {{1, {}}};
    CHECK(why_not(request) == "no node hosts a rank of the job; there is nothing to plan");
  }
  SECTION("names are not known") {
    request.node_names.clear();
    request.trees[0].edges.pop_back();
    CHECK(why_not(request) == "tree 0 has no parent for node 6, which hosts ranks of the job");
  }
}
