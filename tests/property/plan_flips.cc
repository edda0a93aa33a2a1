// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The plan of a running job changes. Whatever the network does, and whenever nodes hear of the
// change, every round has one plan and its results are the sums over all ranks.
#include <random>

#include "tests/support/catch.h"
#include "tests/support/core_cluster.h"

using namespace gradplane;
using gradplane::testing::ClusterOptions;
using gradplane::testing::CoreCluster;
using gradplane::testing::PlanFlip;

namespace {

constexpr std::uint16_t kHelpers = 2;  // nodes 0 and 1, which have no ranks
constexpr std::uint16_t kWorkers = 4;  // nodes with one rank each; the last one has two
constexpr std::uint16_t kNodes = kHelpers + kWorkers;

std::vector<api::Member> members() {
  std::vector<api::Member> all;
  for (std::uint16_t n = 0; n < kHelpers; ++n) all.push_back({.node = n, .ranks = {}});
  for (std::uint16_t w = 0; w < kWorkers; ++w) {
    all.push_back({.node = static_cast<api::NodeId>(kHelpers + w), .ranks = {w}});
  }
  all.back().ranks.push_back(kWorkers);
  return all;
}

api::Tree star(api::NodeId root) {
  api::Tree tree{.weight = 1, .root = root, .parent = {}};
  for (std::uint16_t n = 0; n < kNodes; ++n) {
    tree.parent.push_back(n == root || n < kHelpers ? api::kNoNode : root);
  }
  return tree;
}

/// Workers push to a relay, and the relay to the root.
api::Tree relayed(api::NodeId root) {
  const auto relay = static_cast<api::NodeId>(kHelpers - 1 - root);
  api::Tree tree = star(relay);
  tree.root = root;
  tree.parent[relay] = root;
  return tree;
}

bool is_in(const api::Tree& tree, const api::Plan& plan, std::size_t member) {
  return tree.root == plan.members[member].node || tree.parent[member] != api::kNoNode;
}

/// Removes nodes that are in no tree, because they have no part in the job.
void drop_idle_nodes(api::Plan& plan) {
  for (std::size_t m = plan.members.size(); m-- > 0;) {
    const auto member = static_cast<std::ptrdiff_t>(m);
    const auto uses = [&](const api::Tree& tree) { return is_in(tree, plan, m); };
    if (std::any_of(plan.trees.begin(), plan.trees.end(), uses)) continue;
    plan.members.erase(plan.members.begin() + member);
    for (api::Tree& tree : plan.trees) tree.parent.erase(tree.parent.begin() + member);
  }
}

/// Removes a worker, unless it is a root.
void take_out(api::Plan& plan, api::NodeId worker) {
  for (const api::Tree& tree : plan.trees) {
    if (tree.root == worker) return;
  }
  for (api::Tree& tree : plan.trees) tree.parent[worker] = api::kNoNode;
}

api::Plan random_plan(std::uint32_t epoch, std::mt19937_64& random) {
  api::Plan plan{.epoch = epoch, .activation_round = 0, .members = members(), .trees = {}};
  switch (random() % 3) {
    case 0:
      plan.trees = {star(static_cast<api::NodeId>(random() % kNodes))};
      break;
    case 1:
      for (api::NodeId n = kHelpers; n < kNodes; ++n) {
        if (n == kHelpers || random() % 2 == 0) plan.trees.push_back(star(n));
      }
      break;
    default:
      plan.trees = {relayed(0), relayed(1), star(0)};
      break;
  }
  for (api::Tree& tree : plan.trees) tree.weight = static_cast<std::uint32_t>(1 + random() % 3);
  for (api::NodeId worker = kHelpers + 1; worker < kNodes; ++worker) {
    if (random() % 3 == 0) take_out(plan, worker);
  }
  drop_idle_nodes(plan);
  return plan;
}

}  // namespace

TEST_CASE("plans are exchanged and aborted under loss, repetition and reordering") {
  constexpr std::uint64_t kSeeds = 12;
  static std::size_t joined = 0;
  static std::size_t left = 0;
  const std::uint64_t seed = GENERATE(range(std::uint64_t{1}, kSeeds + 1));
  std::mt19937_64 random(seed);
  ClusterOptions options;
  options.seed = seed;
  options.in_flight = kMaxInFlightRounds;
  options.loss = seed % 3 == 0 ? 0 : 0.05;
  options.duplication = 0.05;
  options.jitter = Duration::us(300);
  options.authenticate = seed % 2 == 0;
  api::Plan first = random_plan(1, random);
  first.activation_round = seed % 4 == 0 ? UINT32_MAX - 150 : 7;
  CoreCluster cluster(first, options);
  std::vector<PlanFlip> flips;
  std::size_t commits = 0;
  std::uint32_t last_epoch = 1;
  for (std::uint32_t f = 0; f < 6; ++f) {
    const bool abort = random() % 3 == 0;
    commits += abort ? 0 : 1;
    last_epoch = abort ? last_epoch : 2 + f;
    flips.push_back(
        {.plan = random_plan(2 + f, random), .after_rounds = 20 + 100 * f, .abort = abort});
  }
  cluster.flip(flips);
  std::vector<std::uint32_t> elements(720, 1);
  for (std::uint32_t& n : elements) {
    if (random() % 2 == 0) n = static_cast<std::uint32_t>(1 + random() % 2000);
  }
  CAPTURE(seed);
  CHECK(cluster.run(elements) == "");
  CHECK(cluster.finished_flips() == flips.size());
  CHECK(cluster.ended_plans() >= commits);
  for (std::size_t m = 0; m < first.members.size(); ++m) {
    if (first.members[m].node == kHelpers) CHECK(cluster.node(m).job().epoch() == last_epoch);
  }
  joined += cluster.joined();
  left += cluster.left();
  if (seed == kSeeds) CHECK((joined > 0 && left > 0));
}
