// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// An attacker on the path sends packets to nodes that are not their receivers.
#include "tests/support/catch.h"
#include "tests/support/core_cluster.h"
#include "tests/support/two_workers.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

constexpr Instant kStart = Instant::from_ns(1'000'000'000);
constexpr std::uint32_t kBlocks = 3;
constexpr std::uint32_t kElements = kBlocks * kMinBlockBytes / 4;
constexpr wire::Key kKey{std::byte{7}};

/// Node 0 is the root of a star. Nodes 1 and 2 have one rank each.
job::JobConfig star_config(std::uint16_t self) {
  job::JobConfig config = testing::two_workers(self, kBlocks);
  config.authenticate = true;
  config.key = kKey;
  return config;
}

api::Plan star(std::uint16_t workers) {
  api::Plan plan{.epoch = 1, .activation_round = 0, .members = {}, .trees = {}};
  plan.members.push_back({.node = 0, .ranks = {}});
  api::Tree tree{.weight = 1, .root = 0, .parent = {api::kNoNode}};
  for (std::uint16_t w = 0; w < workers; ++w) {
    plan.members.push_back({.node = static_cast<api::NodeId>(w + 1), .ranks = {w}});
    tree.parent.push_back(0);
  }
  plan.trees = {tree};
  return plan;
}

}  // namespace

TEST_CASE("an ack of one child's blocks says nothing to another child") {
  CoreNode root(star_config(0));
  CoreNode a(star_config(1));
  CoreNode b(star_config(2));
  REQUIRE(a.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  REQUIRE(b.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  for (const Sent& push : a.drain(kStart)) root.deliver(1, push.bytes, kStart);
  REQUIRE(b.drain(kStart).size() == kBlocks);  // all of them are lost
  const std::vector<Sent> acks = root.drain(kStart);
  REQUIRE(acks.size() == 1);
  REQUIRE(acks[0].to == 1);
  REQUIRE((acks[0].seen().flags & wire::kFlagComplete) != 0);

  b.deliver(0, acks[0].bytes, kStart);
  CHECK(b.drops(hop::Drop::kBadTag) == 1);
  CHECK(b.job().counters().acks_received == 0);
  CHECK(b.job().peers()[0].flow.in_flight() == kBlocks);

  a.deliver(0, acks[0].bytes, kStart);
  CHECK(a.drops(hop::Drop::kBadTag) == 0);
  CHECK(a.job().peers()[0].flow.in_flight() == 0);
}

TEST_CASE("a job ends though every ack goes to everybody") {
  ClusterOptions options;
  options.seed = GENERATE(1u, 2u, 3u, 4u);
  options.authenticate = true;
  options.loss = 0.05;
  options.readdress = true;
  CoreCluster cluster(star(3), options);
  CHECK(cluster.run(std::vector<std::uint32_t>(20, 4096)) == "");
  for (std::size_t member = 1; member <= 3; ++member) {
    CHECK(cluster.node(member).drops(hop::Drop::kBadTag) > 0);
  }
}
