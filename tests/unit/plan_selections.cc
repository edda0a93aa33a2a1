// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/selections.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "control/plan/planner.h"
#include "dataplane/model/limits.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::plan;

namespace {

/// A request for the nodes 0 to n - 1 with a rank each.
PlanRequest selective(std::size_t nodes) {
  PlanRequest request;
  request.epoch = 3;
  request.planner = PlanKind::kSharded;
  for (std::size_t n = 0; n < nodes; ++n) {
    request.members.push_back({static_cast<api::NodeId>(n), {static_cast<std::uint16_t>(n)}});
    request.node_names.emplace_back("w").append(std::to_string(n));
  }
  request.selections = SelectionsWanted{.receivers_ppm = 300'000, .freshness = 4};
  return request;
}

std::size_t sent_by(const api::Plan& plan, std::size_t member) {
  std::size_t sent = 0;
  for (const api::Selection& selection : plan.selections)
    sent += selection.receivers[member].size();
  return sent;
}

std::size_t received_by(const api::Plan& plan, api::NodeId node) {
  std::size_t received = 0;
  for (const api::Selection& selection : plan.selections) {
    for (const auto& receivers : selection.receivers)
      received += static_cast<std::size_t>(std::count(receivers.begin(), receivers.end(), node));
  }
  return received;
}

}  // namespace

TEST_CASE("a sharded plan with selections has the trees and weights of one without") {
  PlanRequest request = selective(5);
  request.link_rates = {{0, 100'000'000}, {2, 400'000'000}};
  const auto plan = make_plan(request);
  REQUIRE(plan.ok());
  CHECK(plan.value().selections.size() == 5);
  request.selections.reset();
  const auto without = make_plan(request);
  REQUIRE(without.ok());
  CHECK(plan.value().trees == without.value().trees);
  CHECK(plan.value().members == without.value().members);
  CHECK(plan.value().epoch == 3);
  CHECK(without.value().selections.empty());
}

TEST_CASE("a node with a slow link sends and receives no more than it must") {
  PlanRequest request = selective(11);
  request.selections->freshness = 1;
  request.link_rates = {{4, 100'000'000}};
  for (api::NodeId n = 0; n < 11; ++n)
    if (n != 4) request.link_rates.push_back({n, 1'000'000'000});
  const auto plan = make_plan(request);
  REQUIRE(plan.ok());
  REQUIRE(plan.value().selections.size() == 2);
  CHECK(sent_by(plan.value(), 4) == 10);
  CHECK(received_by(plan.value(), 4) == 10);
  CHECK(sent_by(plan.value(), 5) > 15);
}

TEST_CASE("pairs are not left for the last selection, whatever share is wanted") {
  const auto most_of = [](const api::Selection& selection) {
    std::vector<std::size_t> received(kMaxNodes);
    std::size_t most = 0;
    for (const auto& receivers : selection.receivers) {
      most = std::max(most, receivers.size());
      for (const api::NodeId node : receivers) most = std::max(most, ++received[node]);
    }
    return most;
  };
  PlanRequest request = selective(41);
  // Of 40 other nodes, 1 ppm would be one receiver, but at least a fifth of them are selected: 8.
  // The other shares give 8, 12 and 20.
  for (const auto& [ppm, each] : std::vector<std::pair<std::uint32_t, std::size_t>>{
           {1, 8}, {200'000, 8}, {300'000, 12}, {500'000, 20}}) {
    CAPTURE(ppm);
    request.selections->receivers_ppm = ppm;
    const auto plan = make_plan(request);
    REQUIRE(plan.ok());
    for (const api::Selection& selection : plan.value().selections)
      CHECK(most_of(selection) == each);
  }
}

TEST_CASE("receivers at random are as many as are wanted, whatever the links are like") {
  PlanRequest request = selective(11);
  request.selections->choice = SelectionsWanted::Choice::kRandom;
  const auto plan = make_plan(request);
  REQUIRE(plan.ok());
  REQUIRE(plan.value().selections.size() == 5);
  for (const api::Selection& selection : plan.value().selections) {
    for (const auto& receivers : selection.receivers) CHECK(receivers.size() == 3);
  }
  request.link_rates = {{4, 1'000'000}, {5, 1'000'000'000}};
  CHECK(make_plan(request).value().selections == plan.value().selections);
  ++request.epoch;
  CHECK(make_plan(request).value().selections != plan.value().selections);
}

TEST_CASE("what cannot have selections is refused with what to do") {
  const auto refused = [](const PlanRequest& request) {
    const auto plan = make_plan(request);
    REQUIRE_FALSE(plan.ok());
    return plan.error().message;
  };
  PlanRequest request = selective(3);
  request.planner = PlanKind::kStar;
  CHECK(refused(request) ==
        "a star plan carries no selections of receivers, which a selective training.mode needs; "
        "use the planner sharded, or set training.mode: exact");
  request = selective(3);
  request.members[1].ranks = {1, 3};
  CHECK(refused(request) ==
        "node w1 has 2 ranks of the job, and a selective training.mode needs one on each node, "
        "because a node sends the update of its rank alone; start one rank on each node, or set "
        "training.mode: exact");
  request.members[1].ranks = {};
  CHECK(refused(request).find("node w1 has 0 ranks") == 0);
  CHECK(refused(selective(1)) ==
        "the job has ranks on 1 node, and a selective training.mode needs 2 to 64, because each "
        "is the root of a tree; start ranks on so many nodes, or set training.mode: exact");
  CHECK(refused(selective(kMaxTrees + 1)).find("the job has ranks on 65 nodes") == 0);
  CHECK(make_plan(selective(kMaxTrees)).ok());
  request = selective(3);
  request.root_candidates = {0, 2};
  CHECK(refused(request) ==
        "only some nodes, or others, may be roots, and a selective training.mode needs a tree of "
        "each node with a rank; set plan.roots: training and name no roots, or set "
        "training.mode: exact");
  request.root_candidates = {2, 0, 1, 3};
  CHECK_FALSE(make_plan(request).ok());
  request.root_candidates = {2, 0, 1};
  CHECK(make_plan(request).ok());
}
