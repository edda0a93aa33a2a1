// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Operations with whole engines in virtual time, over all small plans. Every contributor has a path
// to the root and every receiver a path from it. No node gets bytes that it does not need.
#include <algorithm>
#include <functional>

#include "tests/sim/cluster.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::sim;

namespace {

constexpr std::uint16_t kNodes = 3;

/// All trees over all nodes. A node without a parent is the root.
std::vector<api::Tree> all_trees() {
  std::vector<api::Tree> trees;
  for (std::uint16_t root = 0; root < kNodes; ++root) {
    const auto a = static_cast<std::uint16_t>((root + 1) % kNodes);
    const auto b = static_cast<std::uint16_t>((root + 2) % kNodes);
    for (const auto& [parent_of_a, parent_of_b] : {std::pair{root, root}, {root, a}, {b, root}}) {
      api::Tree tree{.weight = 1, .root = root, .parent = std::vector(kNodes, api::kNoNode)};
      tree.parent[a] = parent_of_a;
      tree.parent[b] = parent_of_b;
      trees.push_back(tree);
    }
  }
  return trees;
}

/// Whether some leaf has no ranks. Such a leaf has nothing to send, and valid plans have none.
bool has_silent_leaf(const api::Plan& plan) {
  for (const api::Tree& tree : plan.trees) {
    for (const api::Member& member : plan.members) {
      const bool is_leaf = std::count(tree.parent.begin(), tree.parent.end(), member.node) == 0;
      if (is_leaf && member.ranks.empty()) return true;
    }
  }
  return false;
}

/// Node n has as many ranks as digit n of `layout`. Ranks are numbered from the last node on.
std::vector<api::Member> members_of(std::uint32_t layout) {
  std::vector<api::Member> members;
  for (std::uint16_t n = 0; n < kNodes; ++n, layout /= 3) {
    members.push_back({.node = n, .ranks = std::vector<std::uint16_t>(layout % 3)});
  }
  std::uint16_t rank = 0;
  for (auto member = members.rbegin(); member != members.rend(); ++member) {
    for (std::uint16_t& number : member->ranks) number = rank++;
  }
  return members;
}

std::uint32_t ranks_of(const api::Plan& plan) {
  std::uint32_t ranks = 0;
  for (const api::Member& m : plan.members) ranks += static_cast<std::uint32_t>(m.ranks.size());
  return ranks;
}

/// Every operation, small and large, and broadcasts from every rank.
std::vector<RoundPlan> rounds_for(std::uint32_t ranks) {
  std::vector<RoundPlan> rounds;
  for (const std::uint32_t shard : {1U, 200U}) {
    for (const Operation o : {Operation::kReduceScatter, Operation::kAllGather}) {
      rounds.push_back({ElementType::kBfloat16, shard * ranks, 0, o});
    }
    rounds.push_back({ElementType::kFloat32, shard * ranks});
    for (std::uint16_t source = 0; source < ranks; ++source) {
      rounds.push_back({ElementType::kFloat16, shard * ranks, 0, Operation::kBroadcast, source});
    }
  }
  return rounds;
}

std::string run_all_operations(const api::Plan& plan) {
  Scenario s;
  s.plan = plan;
  s.rounds = rounds_for(ranks_of(plan));
  s.round_bytes = 8 << 10;
  s.in_flight = kMaxInFlightRounds;
  s.authenticate = false;
  s.compute_max = {};
  return run(s).failure;
}

/// One round of 24 blocks over four hosts, each of which is the root of a quarter.
Outcome run_sharded(Operation operation) {
  Scenario s;
  s.plan = sharded(4);
  s.rounds = {{ElementType::kFloat32, 24 * kMinBlockBytes / 4, 0, operation}};
  s.round_bytes = 24 * kMinBlockBytes;
  return run(s);
}

}  // namespace

TEST_CASE("every operation works over all pairs of trees of three nodes") {
  const std::vector<api::Tree> trees = all_trees();
  REQUIRE(trees.size() == 9);
  std::size_t runs = 0;
  for (std::uint32_t layout = 1; layout < 27; ++layout) {
    for (const api::Tree& first : trees) {
      for (const api::Tree& second : trees) {
        api::Plan plan{.epoch = 1, .members = members_of(layout), .trees = {first, second}};
        plan.trees[1].weight = 2;
        if (has_silent_leaf(plan)) continue;
        const std::string failure = run_all_operations(plan);
        INFO("layout " << layout << ", roots " << first.root << " and " << second.root);
        REQUIRE(failure == "");
        ++runs;
      }
    }
  }
  CHECK(runs > 500);
}

TEST_CASE("reduce_scatter and all_gather send half of what all_reduce sends") {
  const Outcome whole = run_sharded(Operation::kAllReduce);
  REQUIRE(whole.failure == "");
  REQUIRE(whole.counters.blocks_retransmitted == 0);
  CHECK(whole.counters.payload_bytes_sent == 2 * 3 * 24 * kMinBlockBytes);
  for (const Operation operation : {Operation::kReduceScatter, Operation::kAllGather}) {
    const Outcome half = run_sharded(operation);
    CAPTURE(operation_name(operation));
    REQUIRE(half.failure == "");
    REQUIRE(half.counters.blocks_retransmitted == 0);
    CHECK(half.counters.payload_bytes_sent == 3 * 24 * kMinBlockBytes);
    // An all_gather has an empty push from each host to each root.
    const std::uint64_t empty = operation == Operation::kAllGather ? 4 * 3 : 0;
    CHECK(half.counters.blocks_sent == 3 * 24 + empty);
  }
}

TEST_CASE("a small broadcast leaves its source once for each of the others") {
  Scenario s;
  s.plan = sharded(4);
  s.rounds = {{ElementType::kFloat32, 6 * kMinBlockBytes / 4, 0, Operation::kBroadcast, 2}};
  s.round_bytes = 24 * kMinBlockBytes;
  const Outcome outcome = run(s);
  REQUIRE(outcome.failure == "");
  REQUIRE(outcome.counters.blocks_retransmitted == 0);
  CHECK(outcome.counters.payload_bytes_sent == 3 * 6 * kMinBlockBytes);
  CHECK(outcome.counters.blocks_sent == 3 * 6 + 3);
}

TEST_CASE("no rank is done with a broadcast or an all_gather before every rank has submitted it") {
  // The last rank begins after a second. The others submit as many rounds as they may.
  for (const Operation operation : {Operation::kBroadcast, Operation::kAllGather}) {
    Scenario s;
    s.plan = sharded(3);
    s.rounds.assign(30, {ElementType::kFloat32, 300, 0, operation});
    s.in_flight = kMaxInFlightRounds;
    s.compute_max_of_rank = {{}, {}, Duration::ms(30)};
    s.compute_max = {};
    const Outcome outcome = run(s);
    CAPTURE(operation_name(operation));
    CHECK(outcome.failure == "");  // I6 is checked after every turn
  }
}
