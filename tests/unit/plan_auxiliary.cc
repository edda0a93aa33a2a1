// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/auxiliary.h"

#include <random>

#include "control/plan/validate.h"
#include "tests/support/catch.h"
#include "tests/support/plan_networks.h"

using namespace gradplane;
using namespace gradplane::plan;
using namespace gradplane::testing;

namespace {

std::vector<std::vector<api::NodeId>> ways_of(const api::Plan& plan, api::NodeId from,
                                              api::NodeId to) {
  std::vector<std::vector<api::NodeId>> ways;
  for (const api::Route& route : plan.routes) {
    if (route.from == from && route.to == to) ways.push_back(route.via);
  }
  return ways;
}

using Vias = std::vector<std::vector<api::NodeId>>;

}  // namespace

TEST_CASE("a route leads round the slow link of a triangle, in both directions") {
  Network network = sites(3);
  connect(network, 0, 1, 20 * kMbit, 20 * kMbit);
  connect(network, 0, 2, 200 * kMbit, 200 * kMbit);
  connect(network, 1, 2, 200 * kMbit, 200 * kMbit);
  api::Plan plan = star_of(3);
  add_auxiliary_routes(plan, network);
  CHECK(validate(plan).ok());
  CHECK(ways_of(plan, 1, 0) == Vias{{2}});
  CHECK(ways_of(plan, 0, 1) == Vias{{2}});
}

TEST_CASE("no route helps where the access of one end is the slowest") {
  const std::vector<Access> accesses(4, Access{100 * kMbit, 100 * kMbit, {}, 0});
  api::Plan plan = star_of(4);
  plan.routes = {{1, 0, {2}}};
  add_auxiliary_routes(plan, network_of_accesses(accesses));
  CHECK(plan.routes.empty());
}

TEST_CASE("the cheapest routes come first and share no relay") {
  // From 1 to 0, a route over 4 passes site 2 and is faster from there than one over 2. Both would
  // use the same link from 1 to 2, so only the one over 4 is taken. A route over 3 has 50 Mbit/s.
  Network network = sites(5);
  connect(network, 0, 1, 10 * kMbit, 10 * kMbit);
  connect(network, 1, 2, 100 * kMbit, 100 * kMbit);
  connect(network, 2, 0, 100 * kMbit, 100 * kMbit);
  connect(network, 1, 3, 50 * kMbit, 50 * kMbit);
  connect(network, 3, 0, 50 * kMbit, 50 * kMbit);
  connect(network, 2, 4, 400 * kMbit, 400 * kMbit);
  connect(network, 4, 0, 400 * kMbit, 400 * kMbit);
  api::Plan plan = star_of(5);
  add_auxiliary_routes(plan, network);
  CHECK(validate(plan).ok());
  CHECK(ways_of(plan, 1, 0) == Vias{{4}, {3}});
}

TEST_CASE("a planner gives routes where it is asked to and knows the network") {
  PlanRequest request;
  for (std::uint16_t n = 0; n < 3; ++n) request.members.push_back({.node = n, .ranks = {n}});
  request.root_candidates = {0};
  request.auxiliary = true;
  CHECK(make_plan(request).value().routes.empty());
  Network network = sites(3);
  connect(network, 0, 1, 20 * kMbit, 20 * kMbit);
  connect(network, 0, 2, 200 * kMbit, 200 * kMbit);
  connect(network, 1, 2, 200 * kMbit, 200 * kMbit);
  request.network = network;
  CHECK(ways_of(make_plan(request).value(), 1, 0) == Vias{{2}});
  request.auxiliary = false;
  request.in_force = make_plan(request).value();
  CHECK(make_plan(request).value().routes.empty());
}

TEST_CASE("routes over NetStorm's network are valid, and a large plan has none") {
  std::mt19937_64 random(3);
  for (int n = 0; n < 10; ++n) {
    api::Plan plan = star_of(9);
    add_auxiliary_routes(plan, netstorm_network(random));
    CHECK(validate(plan).ok());
    CHECK_FALSE(plan.routes.empty());
  }
  api::Plan large = star_of(kMaxRoutedMembers + 1);
  add_auxiliary_routes(large, sites(kMaxRoutedMembers + 1));
  CHECK(large.routes.empty());
}
