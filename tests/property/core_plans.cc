// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Whole rounds of the protocol core over plans of every shape. Results must be the sums over all
// ranks, whatever the network does, and for all round numbers and clock values.
#include <random>

#include "tests/support/catch.h"
#include "tests/support/core_cluster.h"

using namespace gradplane;
using gradplane::testing::ClusterOptions;
using gradplane::testing::CoreCluster;

namespace {

/// `roots` nodes without ranks, each the root of one tree, and `workers` nodes with one rank each.
api::Plan aggregators(std::uint16_t roots, std::uint16_t workers) {
  api::Plan plan{.epoch = 5, .activation_round = 0, .members = {}, .trees = {}};
  for (std::uint16_t n = 0; n < roots; ++n) plan.members.push_back({.node = n, .ranks = {}});
  for (std::uint16_t w = 0; w < workers; ++w) {
    plan.members.push_back({.node = static_cast<api::NodeId>(roots + w), .ranks = {w}});
  }
  for (std::uint16_t root = 0; root < roots; ++root) {
    api::Tree tree{.weight = root + 1U, .root = root, .parent = {}};
    for (std::size_t m = 0; m < plan.members.size(); ++m) {
      tree.parent.push_back(m < roots ? api::kNoNode : root);
    }
    plan.trees.push_back(tree);
  }
  return plan;
}

/// Two trees over relays without ranks: roots 0 and 1, relays 2 and 3, workers 4 to 7 with two
/// ranks each.
api::Plan relays() {
  api::Plan plan{.epoch = 6, .activation_round = 0, .members = {}, .trees = {}};
  for (std::uint16_t n = 0; n < 4; ++n) plan.members.push_back({.node = n, .ranks = {}});
  for (std::uint16_t n = 4; n < 8; ++n) {
    const auto rank = static_cast<std::uint16_t>(2 * (n - 4));
    plan.members.push_back({.node = n, .ranks = {rank, static_cast<std::uint16_t>(rank + 1)}});
  }
  for (const api::NodeId root : {api::NodeId{0}, api::NodeId{1}}) {
    api::Tree tree{.weight = 1, .root = root, .parent = {api::kNoNode, api::kNoNode, root, root}};
    for (std::uint16_t n = 4; n < 8; ++n)
      tree.parent.push_back(static_cast<api::NodeId>(2 + n % 2));
    plan.trees.push_back(tree);
  }
  return plan;
}

/// Sizes of rounds: some are so small that some trees have no block, and others are large.
std::vector<std::uint32_t> sizes(std::size_t rounds, std::uint32_t largest, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint32_t> out(rounds, 1);
  for (std::uint32_t& n : out) {
    if (random() % 3 == 0) n = static_cast<std::uint32_t>(1 + random() % largest);
  }
  return out;
}

}  // namespace

TEST_CASE("aggregators that a small bucket passes by serve the next large one") {
  CoreCluster cluster(aggregators(3, 2), {});
  std::vector<std::uint32_t> elements(3 * kRoundSlots, 1);
  elements.resize(elements.size() + 4, 2000);
  CHECK(cluster.run(elements) == "");
}

TEST_CASE("every plan sums every round under loss, repetition and reordering") {
  const std::uint64_t seed = GENERATE(1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u);
  ClusterOptions options;
  options.seed = seed;
  options.loss = 0.1;
  options.duplication = 0.1;
  options.jitter = Duration::us(400);
  options.authenticate = seed % 2 == 0;
  for (const api::Plan& plan : {aggregators(1, 3), aggregators(2, 3), relays()}) {
    CoreCluster cluster(plan, options);
    CAPTURE(seed, plan.members.size(), plan.trees.size());
    CHECK(cluster.run(sizes(60, 4096, seed)) == "");
  }
}

TEST_CASE("round numbers and clocks wrap around without a trace") {
  ClusterOptions options;
  // The packets' 32-bit microsecond clock wraps around 20 ms after the start.
  options.start = Instant::from_ns((std::int64_t{1} << 32) * 1000 - 20'000'000);
  options.loss = 0.05;
  options.duplication = 0.05;
  options.jitter = Duration::us(400);
  for (api::Plan plan : {aggregators(1, 3), aggregators(2, 2), aggregators(3, 2), relays()}) {
    const std::uint32_t before_wrap = GENERATE(1u, 7u, 16u, 17u, 40u);
    plan.activation_round = 0U - before_wrap;
    CAPTURE(before_wrap, plan.trees.size());
    CoreCluster cluster(plan, options);
    CHECK(cluster.run(sizes(80, 4096, before_wrap)) == "");
    CHECK(cluster.now() > options.start + Duration::ms(20));
  }
}
