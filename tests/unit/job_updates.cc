// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Updates to groups packet by packet, at node 0 of four. Nodes 2 and 3 receive from it. Nodes 0 and
// 2 receive from node 1. Rank n is on node n, and tree n sums for node n.
#include <algorithm>

#include "dataplane/engine/local_plan.h"
#include "dataplane/hop/path.h"
#include "tests/support/catch.h"
#include "tests/support/core_node.h"
#include "tests/support/packet.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

constexpr std::uint16_t kNodes = 4;
constexpr std::uint32_t kBlocks = 4;
constexpr std::uint32_t kElements = kBlocks * kMinBlockBytes / 4;
constexpr std::size_t kAckPathAt = 23;

api::Plan plan() {
  api::Plan plan{.epoch = 1, .members = {}, .trees = {}};
  for (std::uint16_t n = 0; n < kNodes; ++n) {
    plan.members.push_back({.node = n, .ranks = {n}});
    api::Tree tree{.weight = 1, .root = n, .parent = std::vector<api::NodeId>(kNodes, n)};
    tree.parent[n] = api::kNoNode;
    plan.trees.push_back(tree);
  }
  plan.selections = {{.receivers = {{2, 3}, {0, 2}, {1, 3}, {}}},
                     {.receivers = {{1, 2}, {}, {}, {0, 1}}}};
  return plan;
}

Statement said(std::uint16_t selection = 0) {
  return {.elements = kElements, .operation = Operation::kExchange, .source = selection};
}

PacketBuilder::Round round_of(std::uint32_t id, std::uint16_t selection = 0) {
  return {.id = id, .geometry = Geometry::of(said(selection), kMinBlockBytes, kNodes)};
}

/// A block as its sender sends it to all its receivers.
PacketBuilder push(std::uint16_t from, std::uint32_t block, std::uint32_t round = 0) {
  return PacketBuilder::block(wire::PacketType::kPush, round_of(round), block)
      .sender(from)
      .tree(static_cast<std::uint8_t>(from))
      .without_hop();
}

struct Stage {
  Stage() : node(config()) {}

  static job::JobConfig config() {
    job::JobConfig config;
    config.job = config.epoch = 1;
    config.block_bytes = kMinBlockBytes;
    config.round_bytes = kBlocks * kMinBlockBytes;
    config.local_ranks = {{.arena = nullptr, .rank = 0}};
    engine::fill_local_plan(config, plan(), 0, {}, true);
    return config;
  }
  void submit(std::uint32_t round, std::uint16_t selection = 0) {
    REQUIRE(node.job().submit(0, round, said(selection)) == job::SubmitResult::kAccepted);
  }
  void deliver(const PacketBuilder& packet) { node.deliver(packet.sender(), packet.bytes(), now); }
  std::vector<Sent> drain() {
    std::vector<Sent> out;
    for (Sent& packet : node.drain(now)) {
      if (wire::is_block(packet.seen().type)) out.push_back(std::move(packet));
    }
    return out;
  }
  /// The node acks all blocks. Its newest packet came over `path`: by the group, or to the node
  /// alone.
  void ack(std::uint16_t from, std::uint32_t round, std::uint32_t echo_us, std::uint8_t path,
           std::uint16_t selection = 0) {
    deliver(PacketBuilder::ack(wire::PacketType::kPushAck, round_of(round, selection))
                .sender(from)
                .tree(static_cast<std::uint8_t>(from))
                .path(path)
                .echo_us(echo_us)
                .flags(wire::kFlagComplete));
  }
  std::uint32_t clock_us() const { return static_cast<std::uint32_t>(now.count_ns() / 1000); }

  CoreNode node;
  Instant now = Instant::from_ns(1'000'000'000);
};

std::size_t to_groups(const std::vector<Sent>& packets) {
  return static_cast<std::size_t>(std::count_if(
      packets.begin(), packets.end(), [](const Sent& packet) { return packet.group.has_value(); }));
}

}  // namespace

TEST_CASE("an update goes to its receivers alone and one block to their group, as a trial") {
  Stage stage;
  stage.submit(0);
  const std::vector<Sent> packets = stage.drain();
  CHECK(packets.size() == 2 * kBlocks + 1);
  CHECK(stage.node.job().counters().group_trials == 1);
  for (const Sent& packet : packets) {
    CHECK(packet.seen().type == wire::PacketType::kPush);
    CHECK(packet.seen().tree == (packet.group ? 0 : packet.to));
    if (!packet.group) continue;
    CHECK(*packet.group == GroupName{.job = 1, .epoch = 1, .sender = 0, .tree = 0, .selection = 0});
    CHECK(wire::is_for_group(packet.seen()));
  }
}

TEST_CASE("receivers that have heard their group get updates by it, of that selection alone") {
  Stage stage;
  stage.submit(0);
  (void)stage.drain();
  const std::uint32_t echo_us = stage.clock_us();
  stage.now = stage.now + Duration::ms(1);
  stage.ack(2, 0, echo_us, hop::kGroupPath);
  CHECK(stage.node.job().group_hearing().hear == 1);
  stage.ack(3, 0, echo_us, hop::kGroupPath);
  const GroupHearing hearing = stage.node.job().group_hearing();
  CHECK(hearing.hear == 2);
  CHECK(hearing.listen == 0);
  CHECK(hearing.receivers > hearing.hear);  // also those of the results' group and other selections
  stage.submit(1);
  const std::vector<Sent> packets = stage.drain();
  REQUIRE(packets.size() == kBlocks);
  CHECK(to_groups(packets) == kBlocks);
  CHECK((packets.back().seen().flags & wire::kFlagLast) != 0);
  stage.ack(2, 1, stage.clock_us(), hop::kGroupPath);
  stage.ack(3, 1, stage.clock_us(), hop::kGroupPath);
  stage.submit(2, 1);
  const std::vector<Sent> others = stage.drain();
  CHECK(others.size() == 2 * kBlocks + 1);
  CHECK(to_groups(others) == 1);
}

TEST_CASE("one receiver that hears is no group") {
  Stage stage;
  stage.submit(0);
  (void)stage.drain();
  const std::uint32_t echo_us = stage.clock_us();
  stage.now = stage.now + Duration::ms(1);
  stage.ack(2, 0, echo_us, hop::kGroupPath);
  stage.ack(3, 0, echo_us, hop::kDirectPath);
  stage.submit(1);
  CHECK(to_groups(stage.drain()) == 0);
}

TEST_CASE("an update to a group enters the tree of each receiver, and is acked there") {
  Stage stage;
  stage.submit(0);
  (void)stage.drain();
  stage.deliver(push(1, 2).timestamp_us(77));
  CHECK(stage.node.job().counters().blocks_received == 1);
  stage.now = stage.now + Duration::ms(10);
  const std::vector<Sent> packets = stage.node.drain(stage.now);
  const auto ack = std::find_if(packets.begin(), packets.end(), [](const Sent& packet) {
    return packet.seen().type == wire::PacketType::kPushAck;
  });
  REQUIRE(ack != packets.end());
  CHECK(ack->to == 1);
  CHECK(ack->seen().tree == 0);
  CHECK(ack->seen().ack.echo_us == 77);
  CHECK(ack->seen().words == std::vector<std::uint64_t>{0b100});
  CHECK(ack->bytes[kAckPathAt] == std::byte{hop::kGroupPath});
}

TEST_CASE("an update to a group is for those alone whom its selection names") {
  const auto not_ours = [](const PacketBuilder& packet) {
    Stage stage;
    stage.submit(0);
    (void)stage.drain();
    stage.deliver(packet);
    CHECK(stage.node.job().counters().blocks_received == 0);
    stage.now = stage.now + Duration::ms(10);
    for (const Sent& sent : stage.node.drain(stage.now))
      CHECK_FALSE(wire::is_ack(sent.seen().type));
    return stage.node.drops(hop::Drop::kNotPeer) == 1;
  };
  CHECK(not_ours(push(2, 0)));
  CHECK(not_ours(push(1, 0).operation(Operation::kExchange, 1)));
  CHECK(not_ours(push(1, 0).operation(Operation::kExchange, 2)));  // there is no such selection
  CHECK(not_ours(push(1, 0).operation(Operation::kAllReduce)));
  CHECK(not_ours(push(1, 0).tree(0)));  // node 1 is no parent in this tree
  CHECK(not_ours(push(1, 0).tree(kNodes)));
}

TEST_CASE("all groups of a sender share one row of numbers") {
  Stage stage;
  stage.submit(0);
  (void)stage.drain();
  stage.deliver(push(1, 0).number(70));
  stage.deliver(push(1, 1).number(70));
  stage.deliver(push(1, 1).number(72));  // packet 71 went to others
  CHECK(stage.node.job().counters().blocks_received == 2);
  CHECK(stage.node.drops(hop::Drop::kReplayed) == 1);
}

TEST_CASE("an ack of a group that the round does not have says nothing of who hears") {
  Stage stage;
  REQUIRE(stage.node.job().submit(0, 0, {.elements = kElements}) == job::SubmitResult::kAccepted);
  (void)stage.drain();
  const PacketBuilder::Round sum{.geometry =
                                     Geometry::of({.elements = kElements}, kMinBlockBytes, kNodes)};
  stage.deliver(PacketBuilder::ack(wire::PacketType::kPushAck, sum)
                    .sender(2)
                    .tree(2)
                    .path(hop::kGroupPath)
                    .echo_us(stage.clock_us()));
  CHECK(stage.node.job().counters().acks_received == 1);
}
