// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Planners on networks that nobody would build, but that a file can describe.
#include <vector>

#include "control/plan/packing_bound.h"
#include "control/plan/planner.h"
#include "control/plan/shares.h"
#include "tests/support/catch.h"
#include "tests/support/plan_networks.h"
#include "tests/support/planned.h"

using namespace gradplane;
using namespace gradplane::plan;
using namespace gradplane::testing;

namespace {

Network of_links(std::size_t count, const std::vector<std::pair<int, int>>& links) {
  Network network = sites(count);
  for (const auto& [a, b] : links)
    connect(network, static_cast<std::size_t>(a), static_cast<std::size_t>(b), 100 * kMbit,
            100 * kMbit);
  return network;
}

}  // namespace

TEST_CASE("a way over which nearly nothing arrives is no way") {
  constexpr std::size_t kSites = 60;
  Network network = sites(kSites);
  for (std::size_t s = 1; s < kSites; ++s) connect(network, s - 1, s, 100 * kMbit, 100 * kMbit);
  for (Link& link : network.links) link.loss_ppm = 500'000;
  PlanRequest request = request_over(network, PlanKind::kStar);
  request.root_candidates = {0};
  const Result<api::Plan> star = make_plan(request);
  REQUIRE(star.ok());
  const Result<Prediction> prediction = predict(network, star.value(), request.traffic);
  REQUIRE_FALSE(prediction.ok());
  CHECK(prediction.error().message.find("do not reach each other") != std::string::npos);
  for (const PlanKind kind : {PlanKind::kPacked, PlanKind::kFapt, PlanKind::kAuto}) {
    request.planner = kind;
    request.root_candidates = {};
    CHECK_FALSE(make_plan(request).ok());
  }
}

TEST_CASE("every planner has a plan for one site that nothing limits") {
  for (const PlanKind kind : {PlanKind::kFapt, PlanKind::kPacked, PlanKind::kAuto}) {
    CHECK(planned(request_over(sites(1), kind)).plan.trees.size() == 1);
    Network network = sites(1);
    network.nodes.push_back(network.nodes[0]);
    const api::Plan plan = planned(request_over(network, kind)).plan;
    CHECK_FALSE(plan.trees.empty());
  }
}

TEST_CASE("links that lead one way only make a round") {
  Network network = sites(3);
  for (const auto& [from, to] : {std::pair{0, 2}, {2, 1}, {1, 0}})
    network.links.push_back(
        {static_cast<SiteId>(from), static_cast<SiteId>(to), 100 * kMbit, {}, 0});
  for (const PlanKind kind : {PlanKind::kFapt, PlanKind::kPacked}) {
    const PlanRequest request = request_over(network, kind);
    CHECK_FALSE(planned(request).plan.trees.empty());
    CHECK(packing_bound_s_per_bit(request).ok());
  }
  network.links.pop_back();
  CHECK_FALSE(packing_bound_s_per_bit(request_over(network, PlanKind::kPacked)).ok());
}

TEST_CASE("a named root that another one makes needless is left out") {
  const bool has_links = GENERATE(true, false);
  CAPTURE(has_links);
  Network network = has_links ? of_links(4, {{0, 1}, {0, 2}, {1, 3}}) : sites(4);
  for (Node& node : network.nodes)
    node.access.up_bits_per_s = node.access.down_bits_per_s = 100 * kMbit;
  PlanRequest request = request_over(network, PlanKind::kPacked);
  request.members = {{0, {0}}, {1, {1}}};
  for (const std::vector<api::NodeId>& roots :
       {std::vector<api::NodeId>{2, 3}, {3, 2}, {2, 0}, {1, 3}}) {
    request.root_candidates = roots;
    for (const PlanKind kind : {PlanKind::kPacked, PlanKind::kFapt}) {
      request.planner = kind;
      for (const api::Tree& tree : planned(request).plan.trees)
        CHECK(std::find(roots.begin(), roots.end(), tree.root) != roots.end());
    }
  }
}

TEST_CASE("auto keeps no plan whose roots nobody asks for any more") {
  PlanRequest request = request_over(of_links(3, {{0, 1}, {1, 2}, {0, 2}}), PlanKind::kAuto);
  request.in_force = planned(request).plan;
  request.root_candidates = {2};
  for (const api::Tree& tree : planned(request).plan.trees) CHECK(tree.root == 2);
}

TEST_CASE("one hopeless tree does not hide the shares of the others") {
  const Shares shares = min_max_shares({{{0, 1e-10}}, {{1, 1e-10}}, {{2, 1.0}}}, 3);
  CHECK(shares.of_tree[0] == Approx(0.5));
  CHECK(shares.of_tree[1] == Approx(0.5));
  CHECK(shares.of_tree[2] == Approx(0).margin(1e-9));
  CHECK(shares.s_per_bit == Approx(0.5e-10));
}
