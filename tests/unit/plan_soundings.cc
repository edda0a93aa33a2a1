// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/soundings.h"

#include <algorithm>
#include <random>
#include <vector>

#include "control/plan/validate.h"
#include "dataplane/model/limits.h"
#include "tests/support/catch.h"
#include "tests/support/plan_networks.h"

using namespace gradplane;
using namespace gradplane::plan;
using namespace gradplane::testing;

namespace {

using Soundings = std::vector<api::Sounding>;

}  // namespace

TEST_CASE("links that no tree uses are sounded in both directions") {
  Network network = sites(3);
  connect(network, 0, 1, 20 * kMbit, 20 * kMbit);
  connect(network, 0, 2, 20 * kMbit, 20 * kMbit);
  connect(network, 1, 2, 20 * kMbit, 0);  // the opposite direction is dead
  api::Plan plan = star_of(3);
  plan.soundings = {{0, 1}};  // left from an earlier plan
  add_soundings(plan, network);
  CHECK(plan.soundings == Soundings{{1, 2}});
  network.links.back().bits_per_s = kMbit;
  add_soundings(plan, network);
  CHECK(plan.soundings == Soundings{{1, 2}, {2, 1}});
  CHECK(validate(plan).ok());
}

TEST_CASE("a link that edges cross only together with others is sounded") {
  Network network = sites(3);  // site 2 reaches site 0 over site 1
  connect(network, 0, 1, 20 * kMbit, 20 * kMbit);
  connect(network, 1, 2, 20 * kMbit, 20 * kMbit);
  api::Plan plan = star_of(3);
  add_soundings(plan, network);
  CHECK(plan.soundings == Soundings{{1, 2}, {2, 1}});
}

TEST_CASE("one member sounds for its site: the first that has a neighbour outside of it") {
  Network network = network_of_accesses(std::vector<Access>(5));
  for (Node& node : network.nodes) node.site = 0;
  network.nodes[3].site = 1;
  network.nodes[4].site = 2;
  network.sites.resize(3);
  connect(network, 0, 1, 20 * kMbit, 20 * kMbit);
  connect(network, 0, 2, 20 * kMbit, 20 * kMbit);
  connect(network, 1, 2, 20 * kMbit, 20 * kMbit);
  api::Plan plan = star_of(5);
  // 0 is the parent of 1 and 2, 2 that of 3, and 3 that of 4.
  plan.trees[0].parent = {api::kNoNode, 0, 0, 2, 3};
  add_soundings(plan, network);
  CHECK(plan.soundings == Soundings{{2, 4}, {4, 2}});
}

TEST_CASE("nobody is sounded without links, or without a member at both ends") {
  api::Plan plan = star_of(3);
  add_soundings(plan, sites(3));
  CHECK(plan.soundings.empty());
  Network network = sites(4);
  for (std::size_t a = 0; a < 3; ++a) connect(network, a, 3, 20 * kMbit, 20 * kMbit);
  add_soundings(plan, network);
  CHECK(plan.soundings.empty());
}

TEST_CASE("a node sounds few others, and a plan has few soundings") {
  std::mt19937_64 random(1);
  const std::uint16_t nodes = 100;
  const Network network = random_network(random, nodes, 1);  // a full mesh
  api::Plan plan = star_of(nodes);
  add_soundings(plan, network);
  CHECK(plan.soundings.size() == kMaxSoundings);
  CHECK(validate(plan).ok());
  // The tree uses all links of node 0. All other nodes sound, and all of them are sounded equally
  // often.
  std::vector<std::size_t> sends(nodes), gets(nodes);
  for (const api::Sounding& sounding : plan.soundings) {
    ++sends[sounding.from];
    ++gets[sounding.to];
  }
  for (const auto& count : {sends, gets}) {
    const auto [least, most] = std::minmax_element(count.begin() + 1, count.end());
    CHECK(count[0] == 0);
    CHECK(*most <= *least + 1);
  }
}

TEST_CASE("planners that know the network say who is to be sounded") {
  std::mt19937_64 random(1);
  for (const PlanKind kind : {PlanKind::kFapt, PlanKind::kPacked, PlanKind::kAuto}) {
    const PlanRequest request = request_over(netstorm_network(random), kind);
    const Result<api::Plan> plan = make_plan(request);
    REQUIRE(plan.ok());
    api::Plan other = plan.value();
    add_soundings(other, *request.network);
    CHECK(other.soundings == plan.value().soundings);
  }
  Network network = sites(3);
  connect(network, 0, 1, 20 * kMbit, 20 * kMbit);
  connect(network, 0, 2, 20 * kMbit, 20 * kMbit);
  connect(network, 1, 2, kMbit, kMbit);
  network.routing = Routing::kFewestLinks;
  const Result<api::Plan> plan = make_plan(request_over(network, PlanKind::kFapt));
  REQUIRE(plan.ok());
  CHECK(plan.value().soundings == Soundings{{1, 2}, {2, 1}});
  const Result<api::Plan> star = make_plan(request_over(netstorm_network(random), PlanKind::kStar));
  CHECK(star.value().soundings.empty());
}

TEST_CASE("soundings that nobody can send are refused") {
  struct Row {
    Soundings soundings;
    bool good;
  };
  Soundings many;
  for (api::NodeId n = 1; n <= kMaxSoundedPeers; ++n) many.push_back({0, n});
  Soundings too_many = many;
  too_many.push_back({0, kMaxSoundedPeers + 1});
  const Row rows[] = {{{{0, 1}, {1, 0}}, true}, {{{0, 0}}, false},         {{{0, 20}}, false},
                      {{{20, 0}}, false},       {{{0, 1}, {0, 1}}, false}, {many, true},
                      {too_many, false}};
  for (const Row& row : rows) {
    api::Plan plan = star_of(12);
    plan.soundings = row.soundings;
    CHECK(validate(plan).ok() == row.good);
  }
}
