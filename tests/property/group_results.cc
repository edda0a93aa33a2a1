// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Results that go to a group of all children of a node. Every rank gets every sum, whoever hears
// the group, and results leave the root only once if the network copies them.
#include <functional>

#include "tests/property/seeds.h"
#include "tests/support/catch.h"
#include "tests/support/core_cluster.h"

using namespace gradplane;
using gradplane::testing::ClusterOptions;
using gradplane::testing::CoreCluster;

namespace {

constexpr std::uint32_t kElements = 4096;  // 32 blocks of the smallest size

/// `workers` nodes with one rank each, below a root without ranks, or below its two relays.
api::Plan tree_of(std::uint16_t workers, bool has_relays, std::uint32_t epoch = 5) {
  api::Plan plan{.epoch = epoch, .activation_round = 0, .members = {}, .trees = {}};
  api::Tree tree{.weight = 1, .root = 0, .parent = {api::kNoNode}};
  plan.members.push_back({.node = 0, .ranks = {}});
  const std::uint16_t relays = has_relays ? 2 : 0;
  for (std::uint16_t n = 1; n <= relays; ++n) {
    plan.members.push_back({.node = n, .ranks = {}});
    tree.parent.push_back(0);
  }
  for (std::uint16_t w = 0; w < workers; ++w) {
    plan.members.push_back({.node = static_cast<api::NodeId>(1 + relays + w), .ranks = {w}});
    tree.parent.push_back(static_cast<api::NodeId>(has_relays ? 1 + w % 2 : 0));
  }
  plan.trees.push_back(tree);
  return plan;
}

/// A plan in which every node is the root of one tree.
api::Plan sharded(std::uint16_t nodes) {
  api::Plan plan{.epoch = 7, .activation_round = 0, .members = {}, .trees = {}};
  for (std::uint16_t n = 0; n < nodes; ++n) plan.members.push_back({.node = n, .ranks = {n}});
  for (std::uint16_t root = 0; root < nodes; ++root) {
    api::Tree tree{.weight = 1, .root = root, .parent = {}};
    for (std::uint16_t n = 0; n < nodes; ++n)
      tree.parent.push_back(n == root ? api::kNoNode : root);
    plan.trees.push_back(tree);
  }
  return plan;
}

bool everybody(std::uint16_t, Instant) {
  return true;
}

ClusterOptions with_groups(std::function<bool(std::uint16_t, Instant)> copies_for = everybody) {
  ClusterOptions options;
  options.round_bytes = std::size_t{4} * kElements;
  options.copies_for = std::move(copies_for);
  return options;
}

ClusterOptions rough(std::uint64_t seed, std::function<bool(std::uint16_t, Instant)> copies_for) {
  ClusterOptions options = with_groups(std::move(copies_for));
  options.seed = seed;
  options.authenticate = seed % 2 == 0;
  options.loss = 0.05;
  options.duplication = 0.05;
  options.jitter = Duration::us(400);
  return options;
}

std::vector<std::uint32_t> rounds(std::size_t count) {
  return std::vector<std::uint32_t>(count, kElements);
}

constexpr std::uint32_t kBlocks = kElements * 4 / kMinBlockBytes;

}  // namespace

TEST_CASE("where the network copies, a result leaves its root once") {
  constexpr std::uint32_t kRounds = 60;
  const bool authenticate = GENERATE(false, true);
  ClusterOptions options = with_groups();
  options.authenticate = authenticate;
  CoreCluster cluster(tree_of(6, false), options);
  REQUIRE(cluster.run(rounds(kRounds)) == "");
  const hop::Counters& root = cluster.node(0).job().counters();
  CHECK(root.blocks_to_groups <= kRounds * kBlocks);
  // The first rounds begin before the trial is answered.
  CHECK(root.blocks_to_groups > (kRounds - 6) * kBlocks);
  CHECK(root.blocks_sent - root.blocks_to_groups < 6 * 6 * kBlocks);
  CHECK(root.blocks_retransmitted == 0);
  for (std::size_t m = 1; m <= 6; ++m)
    CHECK(cluster.node(m).drops(hop::Drop::kDuplicate) <= 1);  // the block of the trial
  CHECK(root.group_trials == 1);
}

TEST_CASE("relays and roots of shards have groups of their own") {
  constexpr std::uint32_t kRounds = 60;
  for (const api::Plan& plan : {tree_of(6, true), sharded(4)}) {
    CoreCluster cluster(plan, with_groups());
    REQUIRE(cluster.run(rounds(kRounds)) == "");
    for (std::size_t m = 0; m < 3; ++m) {
      const hop::Counters& node = cluster.node(m).job().counters();
      CAPTURE(plan.epoch, m, node.blocks_sent);
      const std::uint64_t packets = node.blocks_to_groups + node.group_trials;
      CHECK(packets > (kRounds - 6) * kBlocks / plan.trees.size());
    }
  }
}

TEST_CASE("that the network copies is never assumed") {
  constexpr std::uint32_t kRounds = 60;
  CoreCluster cluster(tree_of(4, false), with_groups([](std::uint16_t, Instant) { return false; }));
  REQUIRE(cluster.run(rounds(kRounds)) == "");
  const hop::Counters& root = cluster.node(0).job().counters();
  CHECK(root.blocks_to_groups == 0);
  CHECK(root.group_trials >= 1);
  CHECK(root.group_trials < 8);
  CHECK(root.blocks_retransmitted == 0);
}

TEST_CASE("who does not hear the group gets its results alone") {
  constexpr std::uint32_t kRounds = 60;
  CoreCluster cluster(tree_of(4, false),
                      with_groups([](std::uint16_t node, Instant) { return node != 2; }));
  REQUIRE(cluster.run(rounds(kRounds)) == "");
  const hop::Counters& root = cluster.node(0).job().counters();
  CHECK(root.blocks_to_groups > (kRounds - 6) * kBlocks);
  CHECK(root.blocks_sent - root.blocks_to_groups < (kRounds + 6 * 4) * kBlocks);
  CHECK(root.blocks_sent - root.blocks_to_groups >= kRounds * kBlocks);
}

TEST_CASE("a switch that stops copying in the middle of a round stops nobody") {
  const ClusterOptions start;
  for (const std::int64_t ms : {3, 5, 11}) {
    if (testing::kSanitized && ms > 3) break;
    const Instant from = start.start + Duration::ms(ms);
    const Instant until = from + Duration::ms(150);
    // The switch does not copy for all hosts, or for one of them.
    for (const std::uint16_t only : {std::uint16_t{0}, std::uint16_t{3}}) {
      const auto copies = [&](std::uint16_t node, Instant now) {
        return now < from || now >= until || (only != 0 && node != only);
      };
      CoreCluster cluster(tree_of(4, false), with_groups(copies));
      CAPTURE(ms, only);
      CHECK(cluster.run(rounds(4000)) == "");
      REQUIRE(cluster.now() > until + Duration::ms(200));
      const hop::Counters& root = cluster.node(0).job().counters();
      CHECK(root.blocks_to_groups > 400 * kBlocks);  // the group was used again
      // The number of blocks that the group did not hear depends on what is in flight, not on the
      // time.
      CHECK(root.blocks_retransmitted < 3000);
    }
  }
}

TEST_CASE("rounds of one block show as well that a switch copies nothing any more") {
  const ClusterOptions start;
  ClusterOptions options =
      with_groups([&](std::uint16_t, Instant now) { return now < start.start + Duration::ms(20); });
  options.in_flight = 1;
  CoreCluster cluster(tree_of(4, false), options);
  REQUIRE(cluster.run(std::vector<std::uint32_t>(3000, 8)) == "");
  const hop::Counters& root = cluster.node(0).job().counters();
  CHECK(root.blocks_to_groups > 20);
  CHECK(root.probes < 40);  // each probe delays its round by a timeout
}

TEST_CASE("results by groups are exact under loss, repetition and reordering") {
  testing::Seeds::of_simulations(12).each("group_results", [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const std::uint16_t deaf = static_cast<std::uint16_t>(random() % 8);
    const auto moody = [deaf](std::uint16_t node, Instant now) {
      return node != deaf && now.count_ns() / 50'000'000 % 3 != 0;
    };
    const api::Plan plan = seed % 3 == 0 ? sharded(5) : tree_of(5, seed % 3 == 1);
    const std::function<bool(std::uint16_t, Instant)> switches = moody;
    CoreCluster cluster(plan, rough(seed, seed % 2 == 0 ? switches : everybody));
    CAPTURE(deaf);
    CHECK(cluster.run(rounds(60)) == "");
  });
}

TEST_CASE("a plan's groups are not those of the plan before") {
  testing::Seeds::of_simulations(6).each("group_results", [](std::uint64_t seed) {
    CoreCluster cluster(tree_of(5, true, 5), rough(seed, everybody));
    cluster.flip({{.plan = tree_of(5, true, 6), .after_rounds = 10},
                  {.plan = tree_of(5, true, 7), .after_rounds = 20, .abort = true},
                  {.plan = tree_of(5, true, 8), .after_rounds = 30}});
    CHECK(cluster.run(rounds(200)) == "");
    CHECK(cluster.finished_flips() == 3);
  });
}
