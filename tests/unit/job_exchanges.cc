// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// An exchange packet by packet, at node 0 of three. Node 0 receives from node 1, and node 2
// receives from node 0. Rank n is on node n, and tree n sums for node n.
#include <algorithm>

#include "dataplane/engine/local_plan.h"
#include "tests/support/catch.h"
#include "tests/support/core_node.h"
#include "tests/support/packet.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

constexpr std::uint16_t kNodes = 3;
constexpr std::uint32_t kBlocks = 3;
constexpr std::uint32_t kElements = kBlocks * kMinBlockBytes / 4;

api::Plan plan() {
  api::Plan plan{.epoch = 1, .members = {}, .trees = {}};
  for (std::uint16_t n = 0; n < kNodes; ++n) {
    plan.members.push_back({.node = n, .ranks = {n}});
    api::Tree tree{.weight = 1, .root = n, .parent = std::vector<api::NodeId>(kNodes, n)};
    tree.parent[n] = api::kNoNode;
    plan.trees.push_back(tree);
  }
  plan.selections = {{.receivers = {{2}, {0}, {}}}};
  return plan;
}

struct Stage {
  explicit Stage(const api::Plan& of = plan(), const std::vector<std::uint64_t>& link_rates = {})
      : node(config_of(of, link_rates)) {}

  static job::JobConfig config_of(const api::Plan& of,
                                  const std::vector<std::uint64_t>& link_rates) {
    job::JobConfig config;
    config.job = config.epoch = 1;
    config.block_bytes = kMinBlockBytes;
    config.round_bytes = kBlocks * kMinBlockBytes;
    config.stall_after = job::kMinStall;
    config.local_ranks = {{.arena = nullptr, .rank = 0}};
    engine::fill_local_plan(config, of, 0, link_rates);
    return config;
  }
  static Statement said(std::uint16_t selection = 0) {
    return {.elements = kElements, .operation = Operation::kExchange, .source = selection};
  }
  job::SubmitResult submit(std::uint16_t selection = 0) {
    for (std::uint32_t e = 0; e < kElements; ++e) *node.at(0, 0, e) = 8;
    return node.job().submit(0, 0, said(selection));
  }
  static PacketBuilder push(std::uint16_t from, std::uint32_t block) {
    const PacketBuilder::Round round{.geometry = Geometry::of(said(), kMinBlockBytes, kNodes)};
    std::vector<std::byte> twos(kMinBlockBytes);
    for (std::size_t at = 0; at < twos.size(); at += sizeof(float)) {
      const float two = 2;
      std::memcpy(twos.data() + at, &two, sizeof two);
    }
    return PacketBuilder::block(wire::PacketType::kPush, round, block).sender(from).payload(twos);
  }
  void deliver(const PacketBuilder& packet) { node.deliver(packet.sender(), packet.bytes(), now); }
  void push_all(std::uint16_t from) {
    for (std::uint32_t b = 0; b < kBlocks; ++b) deliver(push(from, b));
    (void)node.drain(now);
  }
  void receiver_acks() {
    const PacketBuilder::Round round{.geometry = Geometry::of(said(), kMinBlockBytes, kNodes)};
    deliver(PacketBuilder::ack(wire::PacketType::kPushAck, round)
                .sender(2)
                .tree(2)
                .flags(wire::kFlagComplete));
    (void)node.drain(now);
  }
  /// An ack of the receiver that acknowledges no block.
  static PacketBuilder receiver_ack() {
    const PacketBuilder::Round round{.geometry = Geometry::of(said(), kMinBlockBytes, kNodes)};
    return PacketBuilder::ack(wire::PacketType::kPushAck, round).sender(2).tree(2);
  }
  /// Returns whether the round is given up. `refuses`: the receiver answers now and then that it
  /// cannot take the round yet.
  bool is_given_up(bool refuses = false) {
    for (const Instant end = now + job::kMinStall * 3; now < end; now = now + Duration::ms(10)) {
      if (refuses && now.count_ns() % Duration::seconds(1).count_ns() == 0) deliver(receiver_ack());
      node.node().tick(now);
      (void)node.drain(now);
      const std::vector<job::Event> events = node.events();
      const auto is_stall = [](const job::Event& e) {
        return e.kind == job::Event::Kind::kStalled;
      };
      if (std::any_of(events.begin(), events.end(), is_stall)) return true;
    }
    return false;
  }
  bool is_done() {
    const std::vector<job::Event> events = node.events();
    return std::any_of(events.begin(), events.end(), [](const job::Event& event) {
      return event.kind == job::Event::Kind::kRoundDone;
    });
  }

  CoreNode node;
  Instant now = Instant::from_ns(1'000'000'000);
};

}  // namespace

TEST_CASE("an update goes to its receivers alone") {
  Stage stage;
  REQUIRE(stage.submit() == job::SubmitResult::kAccepted);
  std::uint32_t pushes = 0;
  for (const Sent& packet : stage.node.drain(stage.now)) {
    CHECK(packet.to == 2);
    CHECK(packet.seen().tree == 2);
    pushes += packet.seen().type == wire::PacketType::kPush ? 1 : 0;
  }
  CHECK(pushes == kBlocks);
}

TEST_CASE("what a rank gave stays in its memory until its receivers have it") {
  Stage stage;
  REQUIRE(stage.submit() == job::SubmitResult::kAccepted);
  stage.push_all(1);
  CHECK_FALSE(stage.is_done());
  CHECK(stage.node.element(0, 0, kElements - 1) == 8);
  stage.receiver_acks();
  CHECK(stage.is_done());
  // The result is the mean of 8 and 2, times three ranks.
  for (std::uint32_t e = 0; e < kElements; ++e) REQUIRE(stage.node.element(0, 0, e) == 15);
}

TEST_CASE("an update from a rank that is not selected enters nothing") {
  Stage stage;
  REQUIRE(stage.submit() == job::SubmitResult::kAccepted);
  stage.push_all(2);
  stage.receiver_acks();
  CHECK_FALSE(stage.is_done());
  CHECK(stage.node.job().counters().blocks_received == 0);
  stage.push_all(1);
  CHECK(stage.is_done());
  CHECK(stage.node.element(0, 0, 0) == 15);
}

TEST_CASE("an exchange names a selection of the plan") {
  CHECK(Stage().submit(1) == job::SubmitResult::kRejected);
  api::Plan without = plan();
  without.selections.clear();
  Stage exact(without);
  CHECK(exact.submit() == job::SubmitResult::kRejected);
  exact.deliver(Stage::push(1, 0));
  CHECK(exact.node.drops(hop::Drop::kBadGeometry) == 1);
}

TEST_CASE("an exchange is of a floating type") {
  Stage stage;
  Statement whole_numbers = Stage::said();
  whole_numbers.type = ElementType::kInt32;
  CHECK(stage.node.job().submit(0, 0, whole_numbers) == job::SubmitResult::kRejected);
}

TEST_CASE("a round that waits names the selected ranks alone") {
  Stage stage;
  REQUIRE(stage.submit() == job::SubmitResult::kAccepted);
  const job::Waiting waiting = stage.node.job().waiting();
  REQUIRE(waiting.silent_count == 1);
  CHECK(waiting.silent_nodes[0] == 1);
}

TEST_CASE("a receiver that has not come to an exchange is waited for while it says so") {
  Stage stage;
  REQUIRE(stage.submit() == job::SubmitResult::kAccepted);
  stage.push_all(1);
  CHECK_FALSE(stage.is_given_up(true));
  CHECK(stage.is_given_up());
}

TEST_CASE("a receiver that stops in the middle of an exchange is given up, whatever it says") {
  Stage stage;
  REQUIRE(stage.submit() == job::SubmitResult::kAccepted);
  stage.push_all(1);
  stage.deliver(Stage::receiver_ack().words(0, {0b1}));
  CHECK(stage.is_given_up(true));
}

TEST_CASE(
    "a peer's link is shared among the selected in exchanges, and among all in other rounds") {
  constexpr std::uint64_t kLink = 60'000'000;
  Stage stage(plan(), {kLink, kLink, kLink});
  const auto share_of = [&stage](std::uint16_t node) {
    stage.now = stage.now + Duration::ms(1);
    stage.node.node().tick(stage.now);
    const auto peers = stage.node.job().peers();
    const auto peer = std::find_if(peers.begin(), peers.end(),
                                   [node](const hop::Peer& p) { return p.node == node; });
    REQUIRE(peer != peers.end());
    return peer->flow.allowed_bits_per_second();
  };
  CHECK(share_of(2) == kLink / 2);
  REQUIRE(stage.submit() == job::SubmitResult::kAccepted);
  CHECK(share_of(2) == kLink);
  CHECK(share_of(1) == kLink / 2);  // no selection sends to node 1
  const Statement exact{.elements = kElements};
  REQUIRE(stage.node.job().submit(0, 1, exact) == job::SubmitResult::kAccepted);
  CHECK(share_of(2) == kLink);  // the exchange has not been sent yet
  stage.push_all(1);
  for (std::uint32_t b = 0; b < kBlocks; ++b) {  // one block in a millisecond, as the link carries
    stage.now = stage.now + Duration::ms(1);
    (void)stage.node.drain(stage.now);
  }
  stage.receiver_acks();
  CHECK(share_of(2) == kLink / 2);
  CHECK(stage.node.job().counters().rounds_completed == 1);
}
