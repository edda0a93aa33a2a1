// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/validate.h"

#include <functional>
#include <string>
#include <vector>

#include "dataplane/model/limits.h"
#include "tests/support/catch.h"

using namespace gradplane;

namespace {

constexpr api::NodeId kNone = api::kNoNode;

/// Node 7 is the root of the first tree, and node 5 a relay without ranks. Nodes 1 and 2 train.
/// Node 9 is in no tree.
api::Plan two_levels() {
  api::Plan plan;
  plan.members = {{7, {}}, {5, {}}, {1, {0, 2}}, {2, {1}}, {9, {}}};
  plan.trees = {{1, 7, {kNone, 7, 5, 7, kNone}}, {3, 1, {kNone, kNone, kNone, 1, kNone}}};
  return plan;
}

struct Case {
  std::function<void(api::Plan&)> change;
  std::string message;
};

void check_all(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    api::Plan plan = two_levels();
    c.change(plan);
    const Status status = plan::validate(plan);
    INFO("expected: " << c.message);
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().message == c.message);
  }
}

}  // namespace

TEST_CASE("a plan with relays and several roots is valid") {
  const Status status = plan::validate(two_levels());
  INFO((status.ok() ? "" : status.error().message));
  CHECK(status.ok());
}

TEST_CASE("a plan with auxiliary routes in both directions is valid") {
  api::Plan plan = two_levels();
  plan.routes = {{1, 5, {2}}, {1, 5, {9, 7}}, {5, 1, {2}}};
  CHECK(plan::validate(plan).ok());
}

TEST_CASE("what is wrong with a plan is said by name") {
  const std::vector<Case> cases = {
      {[](auto& p) { p.members.clear(); }, "a plan with 0 members; it may have 1 to 1024"},
      {[](auto& p) { p.members.resize(kMaxNodes + 1); },
       "a plan with 1025 members; it may have 1 to 1024"},
      {[](auto& p) { p.trees.clear(); }, "a plan with 0 trees; it may have 1 to 64"},
      {[](auto& p) { p.trees.resize(kMaxTrees + 1, p.trees[0]); },
       "a plan with 65 trees; it may have 1 to 64"},
      {[](auto& p) { p.members[4].node = kMaxNodes; }, "member 4 is no node"},
      {[](auto& p) { p.members[4].node = kNone; }, "member 4 is no node"},
      {[](auto& p) { p.members[4].node = 7; }, "node 7 is a member twice"},
      {[](auto& p) {
         p.members[2].ranks = {0, 1};
       },
       "rank 1 is hosted twice"},
      {[](auto& p) {
         p.members[2].ranks = {0, kMaxRanks};
       },
       "node 1 hosts rank 1024; the last one is 1023"},
      {[](auto& p) { p.members[2].ranks.resize(kMaxLocalRanks + 1); },
       "node 1 hosts 65 ranks; a node may host 64"},
      {[](auto& p) {
         p.members[2].ranks.clear();
         p.members[3].ranks.clear();
       },
       "a plan with 0 ranks; it may have 1 to 1024"},
      {[](auto& p) { p.trees[1].weight = 0; }, "tree 1 has no weight"},
      {[](auto& p) { p.trees[0].parent.pop_back(); }, "tree 0 has 4 parents for 5 members"},
      {[](auto& p) { p.trees[0].parent.clear(); }, "tree 0 has 0 parents for 5 members"},
      {[](auto& p) { p.trees[0].root = 3; }, "tree 0 has a root that is no member"},
      {[](auto& p) { p.trees[0].root = kNone; }, "tree 0 has a root that is no member"},
      {[](auto& p) { p.trees[0].root = 2; }, "tree 0 has a root with a parent"},
      {[](auto& p) { p.trees[0].parent[3] = kNone; }, "tree 0 leaves out node 2 and its ranks"},
      {[](auto& p) { p.trees[0].parent[3] = 3; },
       "tree 0 has a parent of node 2 that is no member"},
      {[](auto& p) { p.trees[0].parent[3] = 2000; },
       "tree 0 has a parent of node 2 that is no member"},
      {[](auto& p) { p.trees[0].parent[4] = 7; },
       "tree 0 waits for node 9, which has nothing to send"},
      {[](auto& p) { p.trees[0].parent[2] = 7; },
       "tree 0 waits for node 5, which has nothing to send"},
      {[](auto& p) { p.trees[0].parent[3] = 9; }, "tree 0 ends above node 2 before its root"},
      {[](auto& p) { p.trees[0].parent[3] = 2; }, "tree 0 goes round in a circle at node 2"},
      {[](auto& p) { p.trees[0].parent[1] = 1; }, "tree 0 goes round in a circle at node 5"},
  };
  check_all(cases);
}

TEST_CASE("what is wrong with an auxiliary route is said by its ends") {
  check_all({
      {[](auto& p) {
         p.routes = {{1, 5, {}}};
       },
       "the route from node 1 to node 5 has 0 relays; it may have 1 to 2"},
      {[](auto& p) {
         p.routes = {{1, 5, {2, 9, 7}}};
       },
       "the route from node 1 to node 5 has 3 relays; it may have 1 to 2"},
      {[](auto& p) {
         p.routes = {{1, 7, {2}}};
       },
       "the route from node 1 to node 7 connects no neighbours of a tree"},
      {[](auto& p) {
         p.routes = {{1, 5, {8}}};
       },
       "the route from node 1 to node 5 leads over node 8, which is no member"},
      {[](auto& p) {
         p.routes = {{1, 5, {2, 1}}};
       },
       "the route from node 1 to node 5 is a circle"},
      {[](auto& p) {
         p.routes = {{1, 5, {2}}, {1, 5, {9, 2}}};
       },
       "the route from node 1 to node 5 uses node 2 a second time"},
      {[](auto& p) {
         p.routes = {{1, 5, {2}}, {1, 5, {9}}, {1, 5, {7}}};
       },
       "the route from node 1 to node 5 is one too many; a pair of nodes may have 2"},
  });
}

namespace {

/// Nodes 1, 3 and 2 with a rank each. Each is the root of a tree with the others. There are two
/// selections.
api::Plan with_selections() {
  api::Plan plan;
  plan.members = {{1, {0}}, {3, {2}}, {2, {1}}};
  plan.trees = {{1, 2, {2, 2, kNone}}, {1, 3, {3, kNone, 3}}, {5, 1, {kNone, 1, 1}}};
  plan.selections = {{{{2, 3}, {1}, {1}}}, {{{3}, {1, 2}, {}}}};
  plan.kind = PlanKind::kSharded;
  return plan;
}

}  // namespace

TEST_CASE("a plan with selections is valid, and what is wrong with one is said by name") {
  REQUIRE(plan::validate(with_selections()).ok());
  const std::vector<Case> cases = {
      {[](auto& p) { p.selections.resize(9, p.selections[0]); },
       "a plan with 9 selections; it may have 8"},
      {[](auto& p) {
         p.members = {{1, {0}}};
         p.trees = {{1, 1, {kNone}}};
       },
       "a plan with selections needs at least 2 members"},
      {[](auto& p) { p.trees.pop_back(); },
       "a plan with selections has 2 trees for 3 members; it needs one for each"},
      {[](auto& p) {
         p.members[1].ranks = {2, 3};
       },
       "a plan with selections has 2 ranks on node 3; it needs one"},
      {[](auto& p) { p.members[1].ranks = {}; },
       "tree 0 waits for node 3, which has nothing to send"},
      {[](auto& p) { p.trees[1] = p.trees[0]; }, "a plan with selections has two trees of node 2"},
      {[](auto& p) { p.trees[0].parent[0] = 3; },
       "a plan with selections has a tree of node 2 in which node 1 is no child of the root"},
      {[](auto& p) { p.selections[1].receivers.pop_back(); },
       "selection 1 has receivers of 2 of 3 members"},
      {[](auto& p) { p.selections[1].receivers.push_back({1}); },
       "selection 1 has receivers of 4 of 3 members"},
      {[](auto& p) {
         p.selections[1].receivers[1] = {1, 4};
       },
       "selection 1 has a receiver of node 3 that is no member"},
      {[](auto& p) { p.selections[0].receivers[1] = {kNone}; },
       "selection 0 has a receiver of node 3 that is no member"},
      {[](auto& p) {
         p.selections[0].receivers[1] = {1, 3};
       },
       "selection 0 has node 3 as a receiver of itself"},
      {[](auto& p) {
         p.selections[0].receivers[0] = {3, 2};
       },
       "selection 0 has receivers of node 1 that do not ascend"},
      {[](auto& p) {
         p.selections[0].receivers[0] = {2, 2};
       },
       "selection 0 has receivers of node 1 that do not ascend"},
  };
  for (const Case& c : cases) {
    api::Plan plan = with_selections();
    c.change(plan);
    const Status status = plan::validate(plan);
    INFO("expected: " << c.message);
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().message == c.message);
  }
}
