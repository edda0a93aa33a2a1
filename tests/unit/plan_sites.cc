// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Planners that know the network, on networks with an obvious best plan.
#include <algorithm>
#include <string>
#include <vector>

#include "control/plan/packing_bound.h"
#include "control/plan/planner.h"
#include "control/plan/shares.h"
#include "control/plan/site_plan.h"
#include "dataplane/model/limits.h"
#include "tests/support/catch.h"
#include "tests/support/plan_networks.h"
#include "tests/support/planned.h"

using namespace gradplane;
using namespace gradplane::plan;
using namespace gradplane::testing;

namespace {

std::string error_of(const PlanRequest& request) {
  const auto made = make_predicted_plan(request);
  return made.ok() ? std::string() : made.error().message;
}

double seconds_at(const PlanRequest& request, std::uint64_t bits_per_s) {
  return 8 * static_cast<double>(request.traffic.bytes) / static_cast<double>(bits_per_s);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the best shares of trees keep the busiest resource least busy") {
  // Two trees have a link each, and the third uses both links.
  const std::vector<std::vector<Load>> trees = {{{0, 1.0}}, {{1, 3.0}}, {{0, 1.0}, {1, 3.0}}};
  const Shares shares = min_max_shares(trees, 3);
  CHECK(shares.s_per_bit == Approx(0.75));
  CHECK(shares.of_tree[0] == Approx(0.75));
  CHECK(shares.of_tree[1] == Approx(0.25));
  CHECK(shares.of_tree[2] == Approx(0).margin(1e-9));
  const Shares free = min_max_shares({{}, {}}, 1);
  CHECK(free.s_per_bit == 0);
  CHECK(free.of_tree == std::vector<double>{0.5, 0.5});
}

TEST_CASE("a tree keeps to its height, even where cheap edges lead further down") {
  // A hub with slow links to the sites of a ring. The links of the ring are fast.
  constexpr std::size_t kRing = 9;
  Network network = sites(kRing + 1);
  std::vector<double> cost;
  for (std::size_t s = 1; s <= kRing; ++s) connect(network, 0, s, 10 * kMbit, 10 * kMbit);
  for (std::size_t s = 1; s <= kRing; ++s)
    connect(network, s, s % kRing + 1, 100 * kMbit, 100 * kMbit);
  const PlanRequest request = request_over(network, PlanKind::kPacked);
  const Sites planned_sites = sites_of(request).value();
  Routes routes(network);
  const SiteGraph graph(routes, network, planned_sites.places);
  for (const SiteGraph::Edge& edge : graph.edges()) cost.push_back(1e9 / edge.up_bits_per_s);
  const auto height_of = [&](std::uint32_t max_height) {
    const PlaceTree tree = graph.cheap_tree(cost, 0, max_height);
    std::size_t highest = 0;
    for (PlaceId p = 0; p < tree.parent.size(); ++p) {
      std::size_t height = 0;
      for (PlaceId at = p; at != 0; at = tree.parent[at]) REQUIRE(++height <= kRing);
      highest = std::max(highest, height);
    }
    return highest;
  };
  CHECK(height_of(1) == 1);
  CHECK(height_of(2) == 2);
  CHECK(height_of(4) <= 4);
  CHECK(height_of(UINT32_MAX) > 4);
}

TEST_CASE("a chain has one tree, whose root is in its middle") {
  Network network = sites(5);
  for (std::size_t s = 0; s + 1 < 5; ++s)
    connect(network, s, s + 1, 100 * kMbit, 50 * kMbit, Duration::ms(10));
  for (const PlanKind kind : {PlanKind::kPacked, PlanKind::kAuto}) {
    const PlanRequest request = request_over(network, kind);
    const PlannedTime plan = planned(request);
    REQUIRE(plan.plan.trees.size() == 1);
    CHECK(plan.plan.trees[0].root == 2);
    CHECK(plan.prediction->height == 2);
    CHECK(plan.prediction->transfer.to_seconds() ==
          Approx(seconds_at(request, 50 * kMbit)).epsilon(1e-3));
    CHECK(plan.plan.kind == PlanKind::kPacked);
  }
}

TEST_CASE("a triangle is packed by three trees, of which each leaves out one link") {
  Network network = sites(3);
  for (const auto& [a, b] : {std::pair{0, 1}, {1, 2}, {0, 2}})
    connect(network, static_cast<std::size_t>(a), static_cast<std::size_t>(b), 100 * kMbit,
            100 * kMbit);
  const PlanRequest request = request_over(network, PlanKind::kPacked);
  const PlannedTime plan = planned(request);
  REQUIRE(plan.plan.trees.size() == 3);
  for (const api::Tree& tree : plan.plan.trees) CHECK(tree.weight == plan.plan.trees[0].weight);
  CHECK(plan.prediction->transfer.to_seconds() ==
        Approx(seconds_at(request, 150 * kMbit)).epsilon(1e-3));
  CHECK(packing_bound_s_per_bit(request).value() == Approx(1 / 150e6).epsilon(1e-3));
}

TEST_CASE(
    "NetStorm's trees follow the fastest ways, and its shares the slowest link of each level") {
  // 0 - 1 - 2 is faster than 0 - 2.
  Network network = sites(3);
  connect(network, 0, 1, 100 * kMbit, 80 * kMbit);
  connect(network, 1, 2, 100 * kMbit, 100 * kMbit);
  connect(network, 0, 2, 20 * kMbit, 20 * kMbit);
  const api::Plan plan = planned(request_over(network, PlanKind::kFapt)).plan;
  CHECK(plan.kind == PlanKind::kFapt);
  REQUIRE(plan.trees.size() == 3);
  double shares[3] = {};
  for (const api::Tree& tree : plan.trees) {
    shares[tree.root] = tree.weight;
    std::vector<api::NodeId> parent = {1, 1, 1};  // 0 and 2 are below 1, and 1 below the root
    parent[1] = tree.root;
    parent[tree.root] = api::kNoNode;
    CHECK(tree.parent == parent);
  }
  // Rates from the root down: 100 then 100; the slower of 80 and 100; 100 then 80.
  CHECK(shares[0] / shares[1] == Approx(50.0 / 80.0).epsilon(0.01));
  CHECK(shares[2] / shares[1] == Approx(1 / (1 / 100.0 + 1 / 80.0) / 80.0).epsilon(0.01));
}

TEST_CASE("a dead link is as good as none, and what it cuts off is named") {
  Network network = sites(3);
  network.sites[2].name = "far";
  connect(network, 0, 1, 100 * kMbit, 100 * kMbit);
  connect(network, 1, 2, 100 * kMbit, 100 * kMbit);
  connect(network, 0, 2, 0, 0);
  PlanRequest request = request_over(network, PlanKind::kPacked);
  REQUIRE(planned(request).plan.trees.size() == 1);
  CHECK(planned(request).plan.trees[0].root == 1);
  request.network->links[3].bits_per_s = 0;  // from 2 to 1
  for (const PlanKind kind : {PlanKind::kPacked, PlanKind::kFapt, PlanKind::kAuto}) {
    request.planner = kind;
    CHECK(has(error_of(request), "there is no way between site 0 and site far"));
  }
  request.network->links.clear();
  request.network->nodes[1].access.up_bits_per_s = 0;
  CHECK(has(error_of(request),
            "node 1 of site 1 hosts ranks of the job and has an access of rate 0"));
}

TEST_CASE("a site that only relays is in the trees that need it, if a node there may sum") {
  // Only site 2, which has no ranks, joins sites 0 and 1.
  Network network = sites(5);
  connect(network, 0, 4, 100 * kMbit, 100 * kMbit);  // a dead end
  connect(network, 0, 2, 100 * kMbit, 100 * kMbit);
  connect(network, 1, 2, 100 * kMbit, 100 * kMbit);
  connect(network, 3, 2, 100 * kMbit, 100 * kMbit);
  PlanRequest request = request_over(network, PlanKind::kPacked);
  request.members = {{0, {0}}, {1, {1}}, {3, {2}}};
  const PlannedTime direct = planned(request);
  CHECK(direct.plan.members.size() == 3);
  CHECK(packing_bound_s_per_bit(request).ok());
  request.summing = {2, 4};
  CHECK_FALSE(packing_bound_s_per_bit(request).ok());
  const PlannedTime relayed = planned(request);
  REQUIRE(relayed.plan.members.size() == 4);
  CHECK(relayed.plan.trees[0].root == 2);
  CHECK(relayed.plan.members[3].node == 3);
  CHECK(relayed.prediction->transfer.to_seconds() ==
        Approx(seconds_at(request, 100 * kMbit)).epsilon(1e-3));
  CHECK(direct.prediction->transfer > relayed.prediction->transfer);
  // An operator may name a root, even where another site would be better.
  request.root_candidates = {3};
  for (const PlanKind kind : {PlanKind::kPacked, PlanKind::kFapt}) {
    request.planner = kind;
    for (const api::Tree& tree : planned(request).plan.trees) CHECK(tree.root == 3);
  }
  request.root_candidates = {9};
  CHECK(has(error_of(request), "none of the nodes that may be roots"));
}

TEST_CASE("hosts of one site share what is summed there") {
  Network network;
  network.sites.resize(2);
  for (int n = 0; n < 8; ++n)
    network.nodes.push_back({static_cast<SiteId>(n / 4), {1000 * kMbit, 1000 * kMbit, {}, 0}});
  connect(network, 0, 1, 900 * kMbit, 900 * kMbit);
  const PlanRequest request = request_over(network, PlanKind::kPacked);
  const PlannedTime plan = planned(request);
  CHECK(plan.plan.trees.size() == 4);  // in each tree another host sends to the other site
  // The busiest host sends everything once, and a quarter to three others and to the other site.
  const double busiest = 0.75 + 0.25 * 4;
  CHECK(plan.prediction->transfer.to_seconds() ==
        Approx(busiest * seconds_at(request, 1000 * kMbit)).epsilon(1e-2));
}

TEST_CASE("hosts of a single site are planned as sites") {
  Network network;
  network.sites.resize(1);
  for (int n = 0; n < 6; ++n) network.nodes.push_back({0, {1000 * kMbit, 1000 * kMbit, {}, 0}});
  const PlanRequest request = request_over(network, PlanKind::kPacked);
  CHECK(planned(request).prediction->transfer.to_seconds() ==
        Approx(2 * 5.0 / 6 * seconds_at(request, 1000 * kMbit)).epsilon(1e-2));
  const PlanRequest alone = request_over(sites(1), PlanKind::kAuto);
  CHECK(planned(alone).plan.trees[0].root == 0);
}

TEST_CASE("a link that is slower than it says makes the plan slower, and another plan better") {
  Network claimed = sites(3);
  for (const auto& [a, b] : {std::pair{0, 1}, {1, 2}, {0, 2}})
    connect(claimed, static_cast<std::size_t>(a), static_cast<std::size_t>(b), 100 * kMbit,
            100 * kMbit);
  PlanRequest request = request_over(claimed, PlanKind::kAuto);
  const api::Plan made = planned(request).plan;
  Network real = claimed;
  real.links[0].bits_per_s = 10 * kMbit;
  const Duration as_made = predict(real, made, request.traffic).value().time;
  request.network = real;
  request.in_force = made;
  const PlannedTime other = planned(request);
  CHECK(other.prediction->time.to_seconds() < 0.3 * as_made.to_seconds());
  CHECK(other.plan.trees.size() < made.trees.size() + 1);
}

TEST_CASE("auto keeps the plan in force until another one is worth the switch") {
  Network network = sites(2);
  for (Node& node : network.nodes)
    node.access.up_bits_per_s = node.access.down_bits_per_s = 100 * kMbit;
  network.nodes.push_back({0, {111 * kMbit, 111 * kMbit, {}, 0}});
  network.nodes[2].site = 2;
  network.sites.resize(3);
  PlanRequest request = request_over(network, PlanKind::kAuto);
  request.epoch = 8;
  api::Plan star{7, 40, request.members, {{1, 0, {api::kNoNode, 0, 0}}}, PlanKind::kStar};
  const double best = planned(request).prediction->time.to_seconds();
  // `ratio`: the time under the star over that under the best plan.
  const auto in_force_for = [&](double ratio) {
    request.in_force = star;
    for (Node* node : {&request.network->nodes[0]})
      node->access.up_bits_per_s = node->access.down_bits_per_s = static_cast<std::uint64_t>(
          2 * 8 * static_cast<double>(request.traffic.bytes) / (best * ratio));
    return planned(request).plan;
  };
  SECTION("it is nearly as good") {
    const api::Plan kept = in_force_for(0.9);
    CHECK(kept.kind == PlanKind::kStar);
    CHECK(kept.trees[0].root == 0);
    CHECK(kept.epoch == 8);
    CHECK(kept.activation_round == request.activation_round);
  }
  SECTION("it is much worse") {
    CHECK(in_force_for(3).kind == PlanKind::kPacked);
  }
  SECTION("it is of other ranks") {
    star.members[0].ranks = {5};
    CHECK(in_force_for(0.9).kind == PlanKind::kPacked);
  }
}

TEST_CASE("planners need to know the network, and where the ranks are") {
  PlanRequest request = request_over(sites(2), PlanKind::kPacked);
  request.node_names = {"a", "b"};
  request.network->nodes[1].site = kNoSite;
  CHECK(error_of(request) ==
        "node b hosts ranks of the job and is at no site of the network; add it to one");
  request.network.reset();
  for (const PlanKind kind : {PlanKind::kPacked, PlanKind::kFapt, PlanKind::kAuto}) {
    request.planner = kind;
    CHECK(has(error_of(request), "nothing is known of the network"));
  }
  request.planner = PlanKind::kStar;
  CHECK_FALSE(planned(request).prediction);
}

TEST_CASE("a plan has as many trees as its message has room for") {
  CHECK(max_trees_of(9) == kMaxTrees);
  CHECK(max_trees_of(kMaxNodes) >= 24);
  CHECK(max_trees_of(kMaxNodes) < kMaxTrees);
}
