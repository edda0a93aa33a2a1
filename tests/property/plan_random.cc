// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "control/plan/planner.h"
#include "control/plan/validate.h"
#include "dataplane/model/limits.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::plan;

namespace {

std::uint32_t below(std::mt19937_64& random, std::size_t bound) {
  return static_cast<std::uint32_t>(random() % bound);
}

/// A cluster of any size and shape that can run a job.
PlanRequest random_request(std::mt19937_64& random) {
  std::vector<api::NodeId> nodes(kMaxNodes);
  std::iota(nodes.begin(), nodes.end(), api::NodeId{0});
  std::shuffle(nodes.begin(), nodes.end(), random);
  const std::size_t workers = 1 + below(random, below(random, 4) == 0 ? 500 : 12);
  const std::size_t aggregators = below(random, 80);

  PlanRequest request;
  request.epoch = below(random, 1000);
  request.planner = below(random, 2) == 0 ? PlanKind::kStar : PlanKind::kSharded;
  std::vector<std::uint16_t> ranks;
  for (std::size_t i = 0; i < workers; ++i) {
    request.members.push_back({nodes[i], std::vector<std::uint16_t>(1 + below(random, 2))});
    for (std::size_t r = 0; r < request.members.back().ranks.size(); ++r) {
      ranks.push_back(static_cast<std::uint16_t>(ranks.size()));
    }
  }
  std::shuffle(ranks.begin(), ranks.end(), random);
  for (api::Member& member : request.members) {
    for (std::uint16_t& rank : member.ranks) {
      rank = ranks.back();
      ranks.pop_back();
    }
  }
  for (std::size_t i = 0; i < aggregators; ++i) {
    request.root_candidates.push_back(nodes[below(random, workers + 100)]);
  }
  for (std::size_t i = 0; i < workers + 100; ++i) {
    if (below(random, 3) != 0)
      request.link_rates.push_back({nodes[i], random() >> below(random, 64)});
  }
  return request;
}

bool equal(const api::Plan& a, const api::Plan& b) {
  const auto same_member = [](const api::Member& x, const api::Member& y) {
    return x.node == y.node && x.ranks == y.ranks;
  };
  const auto same_tree = [](const api::Tree& x, const api::Tree& y) {
    return x.weight == y.weight && x.root == y.root && x.parent == y.parent;
  };
  return a.epoch == b.epoch && a.activation_round == b.activation_round &&
         std::equal(a.members.begin(), a.members.end(), b.members.begin(), b.members.end(),
                    same_member) &&
         std::equal(a.trees.begin(), a.trees.end(), b.trees.begin(), b.trees.end(), same_tree);
}

void check_roots(const PlanRequest& request, const api::Plan& plan) {
  std::set<api::NodeId> candidates(request.root_candidates.begin(), request.root_candidates.end());
  if (candidates.empty()) {
    for (const api::Member& member : request.members) candidates.insert(member.node);
  }
  std::set<api::NodeId> roots;
  for (const api::Tree& tree : plan.trees) {
    REQUIRE(candidates.count(tree.root) == 1);
    REQUIRE(roots.insert(tree.root).second);
    REQUIRE(tree.weight <= 1000);
  }
  const std::size_t expected =
      request.planner == PlanKind::kStar ? 1 : std::min(candidates.size(), kMaxTrees);
  REQUIRE(roots.size() == expected);
}

}  // namespace

TEST_CASE("every planner gives a valid plan for every cluster, whatever the order of its lists") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    PlanRequest request = random_request(random);
    const auto plan = make_plan(request);
    INFO((plan.ok() ? "" : plan.error().message));
    REQUIRE(plan.ok());
    REQUIRE(validate(plan.value()).ok());
    check_roots(request, plan.value());

    std::shuffle(request.members.begin(), request.members.end(), random);
    std::shuffle(request.root_candidates.begin(), request.root_candidates.end(), random);
    std::shuffle(request.link_rates.begin(), request.link_rates.end(), random);
    for (api::Member& member : request.members) {
      std::shuffle(member.ranks.begin(), member.ranks.end(), random);
    }
    const auto again = make_plan(request);
    REQUIRE(again.ok());
    REQUIRE(equal(plan.value(), again.value()));
  }
}

TEST_CASE(
    "validate survives any plan, and accepts none whose numbers were scrambled out of range") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    auto made = make_plan(random_request(random));
    REQUIRE(made.ok());
    api::Plan plan = std::move(made.value());
    for (std::uint32_t i = 0; i < 1 + seed % 5; ++i) {
      api::Member& member = plan.members[below(random, plan.members.size())];
      api::Tree& tree = plan.trees[below(random, plan.trees.size())];
      const auto any = static_cast<std::uint16_t>(random());
      switch (below(random, 5)) {
        case 0:
          member.node = any;
          break;
        case 1:
          member.ranks.push_back(any);
          break;
        case 2:
          tree.root = any;
          break;
        case 3:
          if (!tree.parent.empty()) tree.parent[below(random, tree.parent.size())] = any;
          break;
        default:
          tree.parent.resize(below(random, 2 * plan.members.size()));
          break;
      }
    }
    (void)validate(plan).ok();  // must end, without an error of the sanitizers
    plan.trees[0].parent.assign(plan.members.size(), static_cast<api::NodeId>(kMaxNodes));
    REQUIRE_FALSE(validate(plan).ok());
  }
}
