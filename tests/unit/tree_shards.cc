// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The shards of a tree that go over each of its edges. The time to open a round with shards grows
// with their number, so an edge may not look at the shards of other edges.
#include <algorithm>

#include "dataplane/engine/local_plan.h"
#include "dataplane/job/plan.h"
#include "tests/support/catch.h"
#include "tests/support/engine_host.h"

using namespace gradplane;

namespace {

using Shards = std::vector<std::uint32_t>;

/// Returns a node's part of a plan. Each node of the plan has one rank.
std::unique_ptr<job::Plan> part_of(const api::Plan& plan, api::NodeId self) {
  job::JobConfig config;
  config.self = self;
  config.block_bytes = kMinBlockBytes;
  config.round_bytes = plan.members.size() * kMinBlockBytes;
  config.local_ranks = {{.arena = nullptr, .rank = self}};
  engine::fill_local_plan(config, plan, self, {});
  return std::make_unique<job::Plan>(config, config);
}

Shards below(const aggregate::Tree& tree, std::uint16_t edge) {
  const std::span<const std::uint32_t> shards = tree.shards_below(hop::EdgeIndex(edge));
  return {shards.begin(), shards.end()};
}

/// Returns the number of marks that opening a round with shards takes, over all trees and edges.
std::size_t marks(const job::Plan& plan) {
  std::size_t count = 0;
  for (const aggregate::Tree& tree : plan.trees()) {
    for (const hop::InEdge& edge : tree.in()) count += tree.shards_below(edge.id.index).size();
  }
  return count;
}

/// Node 0 is the root, and 1 and 4 are relays: 0 <- 1 <- {2, 3}, and 0 <- 4 <- 5.
api::Plan with_relays() {
  api::Plan plan = testing::star_of(6);
  plan.trees[0].parent = {api::kNoNode, 0, 1, 1, 0, 4};
  return plan;
}

}  // namespace

TEST_CASE("a shard goes over the edges to its rank, and over no other") {
  const api::Plan plan = with_relays();
  const auto root = part_of(plan, 0);
  CHECK(below(root->trees()[0], 0) == Shards{1, 2, 3});
  CHECK(below(root->trees()[0], 1) == Shards{4, 5});
  const auto relay = part_of(plan, 1);  // the first edge is that to the parent
  CHECK(below(relay->trees()[0], 0) == Shards{1, 2, 3});
  CHECK(below(relay->trees()[0], 1) == Shards{2});
  CHECK(below(relay->trees()[0], 2) == Shards{3});
  const auto leaf = part_of(plan, 5);
  CHECK(below(leaf->trees()[0], 0) == Shards{5});
}

TEST_CASE("shards are counted in each tree anew") {
  api::Plan plan = testing::star_of(4);
  // A second tree with another root gets the shard of that root, and half of the shards whose hosts
  // are no roots.
  plan.trees.push_back({.weight = 1, .root = 3, .parent = {3, 3, 3, api::kNoNode}});
  const auto part = part_of(plan, 0);
  REQUIRE(part->trees().size() == 2);
  std::size_t shards = 0;
  for (std::size_t t = 0; t < 2; ++t) shards += part->partition().shards_of(t).size();
  CHECK(shards == 4);
  // Node 0 is the root of the first tree, and a leaf of the second, where it has no shard.
  CHECK(marks(*part) == part->partition().shards_of(0).size() - 1);
}

TEST_CASE("opening a round with shards costs a mark for each shard and height, not for each edge") {
  for (const std::uint16_t hosts : {std::uint16_t{2}, std::uint16_t{64}, std::uint16_t{300}}) {
    CHECK(marks(*part_of(testing::star_of(hosts), 0)) == hosts - std::size_t{1});
    CHECK(marks(*part_of(testing::star_of(hosts), 1)) == 1);
  }
}
