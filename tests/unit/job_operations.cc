// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Operations in which some blocks have one contributor or go to some ranks only, packet by packet:
// a root without ranks, and two workers with one rank each. Rank 0 is on node 1.
#include <algorithm>

#include "tests/support/catch.h"
#include "tests/support/core_node.h"
#include "tests/support/packet.h"
#include "tests/support/two_workers.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

constexpr std::uint32_t kBlocks = 6;  // three for each shard
constexpr std::uint32_t kShardBlocks = kBlocks / 2;
constexpr std::uint32_t kElements = kBlocks * kMinBlockBytes / 4;
constexpr auto kPush = wire::PacketType::kPush;
constexpr auto kResult = wire::PacketType::kResult;

struct Stage {
  Stage(std::uint16_t self, Operation of) : operation(of), node(config_of(self)) {}

  static job::JobConfig config_of(std::uint16_t self) {
    job::JobConfig config = two_workers(self, kBlocks);
    config.stall_after = job::kMinStall;
    return config;
  }
  Statement said() const { return {.elements = kElements, .operation = operation}; }
  PacketBuilder::Round round() const {
    return {.geometry = Geometry::of(said(), kMinBlockBytes, 2)};
  }
  PacketBuilder push(std::uint16_t from, std::uint32_t block) const {
    return PacketBuilder::block(kPush, round(), block).sender(from);
  }
  void deliver(const PacketBuilder& packet) { node.deliver(packet.sender(), packet.bytes(), now); }
  void submit() { REQUIRE(node.job().submit(0, 0, said()) == job::SubmitResult::kAccepted); }

  /// Drains the node. Returns the blocks of `type` that it sends to the node `to`.
  std::vector<SeenPacket> blocks_to(std::uint16_t to, wire::PacketType type) {
    sent = node.drain(now);
    std::vector<SeenPacket> blocks;
    for (const Sent& packet : sent) {
      if (packet.to == to && packet.seen().type == type) blocks.push_back(packet.seen());
    }
    std::sort(blocks.begin(), blocks.end(),
              [](const auto& a, const auto& b) { return a.block < b.block; });
    return blocks;
  }
  bool is_done() {
    const std::vector<job::Event> events = node.events();
    return std::any_of(events.begin(), events.end(), [](const job::Event& event) {
      return event.kind == job::Event::Kind::kRoundDone;
    });
  }

  Operation operation;
  CoreNode node;
  Instant now = Instant::from_ns(1'000'000'000);
  std::vector<Sent> sent;  // the packets that blocks_to() drained last
};

}  // namespace

TEST_CASE("who has nothing of the first block says so with an empty push, and pushes its own") {
  Stage leaf(1, Operation::kAllGather);
  leaf.submit();
  auto pushes = leaf.blocks_to(0, kPush);
  REQUIRE(pushes.size() == kShardBlocks);  // rank 0 has the first shard
  for (const SeenPacket& push : pushes) CHECK(push.contributors == 1);

  Stage other(1, Operation::kBroadcast);
  Statement from_other = other.said();
  from_other.source = 1;
  REQUIRE(other.node.job().submit(0, 0, from_other) == job::SubmitResult::kAccepted);
  pushes = other.blocks_to(0, kPush);
  REQUIRE(pushes.size() == 1);
  CHECK(pushes[0].block == 0);
  CHECK(pushes[0].contributors == 0);
  CHECK(pushes[0].payload.empty());
  CHECK((pushes[0].flags & wire::kFlagPartial) != 0);
}

TEST_CASE(
    "a root passes on what one rank has, to those who are in the round, and the first block last") {
  Stage root(0, Operation::kAllGather);
  for (std::uint32_t b = 0; b < kShardBlocks; ++b) root.deliver(root.push(1, b));
  // Node 2 has sent nothing, so it gets no results. The first block waits for node 2.
  auto results = root.blocks_to(1, kResult);
  REQUIRE(results.size() == kShardBlocks - 1);
  CHECK(results[0].block == 1);
  CHECK(results[0].contributors == 1);
  CHECK(std::none_of(root.sent.begin(), root.sent.end(), [](const Sent& s) { return s.to == 2; }));
  root.deliver(root.push(2, 0).empty());
  results = root.blocks_to(2, kResult);
  CHECK(results.size() == kShardBlocks);
  for (std::uint32_t b = kShardBlocks; b < kBlocks; ++b) root.deliver(root.push(2, b));
  CHECK(root.blocks_to(1, kResult).size() == kShardBlocks);
}

TEST_CASE("a push that does not name its ranks is dropped") {
  constexpr auto kBad = hop::Drop::kBadContributors;
  Stage root(0, Operation::kAllGather);
  root.deliver(root.push(1, 0).empty());  // rank 0 contributes to block 0
  CHECK(root.node.drops(kBad) == 1);
  root.deliver(root.push(2, 0));  // rank 1 does not contribute to block 0
  CHECK(root.node.drops(kBad) == 2);
  root.deliver(root.push(1, 0).contributors(2));
  CHECK(root.node.drops(kBad) == 3);
  root.deliver(root.push(2, 1));  // nor to block 1
  CHECK(root.node.drops(kBad) == 4);
  root.deliver(root.push(1, 0).flags(wire::kFlagPartial));
  CHECK(root.node.drops(kBad) == 5);
  CHECK(root.node.job().counters().blocks_received == 0);
  root.deliver(root.push(1, 0));
  root.deliver(root.push(2, 0).empty());
  CHECK(root.node.job().counters().blocks_received == 2);

  Stage of_sums(0, Operation::kReduceScatter);
  of_sums.deliver(of_sums.push(1, 0)
                      .empty()
                      .flags(wire::kFlagPartial)
                      .payload(std::vector<std::byte>(kMinBlockBytes)));
  CHECK(of_sums.node.drops(kBad) == 1);
  // A block that the child does not carry counts as a duplicate.
  root.deliver(root.push(2, 1).empty());
  CHECK(root.node.drops(hop::Drop::kDuplicate) == 1);
}

TEST_CASE("a packet of another operation or source than the round's is dropped and told") {
  Stage root(0, Operation::kBroadcast);
  root.deliver(root.push(1, 1));
  PacketBuilder other = root.push(2, 0);
  SECTION("operation") {
    other.operation(Operation::kAllGather).empty();
  }
  SECTION("no operation but a sum") {
    other.operation(Operation::kAllReduce);
  }
  SECTION("source") {
    other.operation(Operation::kBroadcast, 1);
  }
  root.deliver(other);
  CHECK(root.node.drops(hop::Drop::kMismatch) == 1);
  const std::vector<job::Event> events = root.node.events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == job::Event::Kind::kMismatch);
  CHECK(events[0].ours.operation == Operation::kBroadcast);
  CHECK(events[0].theirs.statement().operation != Operation{});
}

TEST_CASE("what no round can be is dropped before it opens one") {
  Stage root(0, Operation::kAllGather);
  root.deliver(root.push(1, 0).round_elements(kElements - 1));  // two ranks cannot divide it
  root.deliver(root.push(1, 0).operation(Operation::kBroadcast, 2));
  // An empty push with a payload is malformed.
  root.deliver(root.push(2, 0).empty().payload(std::vector<std::byte>(4)));
  CHECK(root.node.drops(hop::Drop::kBadGeometry) == 2);
  CHECK(root.node.drops(hop::Drop::kMalformed) == 1);
  CHECK_FALSE(root.node.job().waiting().any);
}

TEST_CASE(
    "a rank is done with a reduce_scatter when it has its shard and its pushes have arrived") {
  Stage leaf(1, Operation::kReduceScatter);
  leaf.submit();
  REQUIRE(leaf.blocks_to(0, kPush).size() == kBlocks);
  for (std::uint32_t b = 0; b < kShardBlocks; ++b) {
    leaf.deliver(PacketBuilder::block(kResult, leaf.round(), b).sender(0).contributors(2));
  }
  CHECK_FALSE(leaf.is_done());
  // The result of another rank's shard is of no use here.
  leaf.deliver(PacketBuilder::block(kResult, leaf.round(), 4).sender(0).contributors(2));
  CHECK(leaf.node.drops(hop::Drop::kDuplicate) == 1);
  leaf.deliver(
      PacketBuilder::ack(wire::PacketType::kPushAck, leaf.round()).sender(0).words(0, {0b011111}));
  CHECK_FALSE(leaf.is_done());
  leaf.deliver(
      PacketBuilder::ack(wire::PacketType::kPushAck, leaf.round()).sender(0).words(0, {0b111111}));
  CHECK(leaf.is_done());
}

TEST_CASE("a node asks about a block that it only receives, and names the parent that is silent") {
  Stage leaf(1, Operation::kAllGather);
  leaf.submit();
  (void)leaf.blocks_to(0, kPush);
  leaf.deliver(
      PacketBuilder::ack(wire::PacketType::kPushAck, leaf.round()).sender(0).words(0, {0b111111}));
  for (std::uint32_t b = 0; b < kShardBlocks; ++b) {
    leaf.deliver(PacketBuilder::block(kResult, leaf.round(), b).sender(0));
  }
  std::vector<SeenPacket> questions;
  std::vector<job::Event> events;
  const Instant end = leaf.now + job::kMinStall * 3;
  while (leaf.now < end && events.empty()) {
    leaf.now = leaf.now + Duration::ms(10);
    leaf.node.node().tick(leaf.now);
    for (const SeenPacket& question : leaf.blocks_to(0, kPush)) questions.push_back(question);
    events = leaf.node.events();
  }
  REQUIRE_FALSE(questions.empty());
  for (const SeenPacket& question : questions) {
    CHECK(question.block >= kShardBlocks);
    CHECK(question.contributors == 0);
  }
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == job::Event::Kind::kStalled);
  CHECK(events[0].stall.reason == Stall::Reason::kUnanswered);
  CHECK(events[0].node == 0);
}

TEST_CASE("a plan without all ranks of the job carries all_reduce alone") {
  for (const Operation operation : {Operation::kReduceScatter, Operation::kAllGather,
                                    Operation::kBroadcast, Operation::kAllReduce}) {
    job::JobConfig config = Stage::config_of(1);
    config.has_all_ranks = false;
    CoreNode node(config);
    const bool is_all_reduce = operation == Operation::kAllReduce;
    CHECK(node.job().submit(0, 0, {.elements = kElements, .operation = operation}) ==
          (is_all_reduce ? job::SubmitResult::kAccepted : job::SubmitResult::kRejected));
  }
}

TEST_CASE("a child whose ranks have not all come owes no blocks of those that have") {
  Stage root(0, Operation::kAllGather);
  const auto is_given_up = [&root] {
    for (Instant end = root.now + job::kMinStall * 3; root.now < end;
         root.now = root.now + Duration::ms(100)) {
      root.node.node().tick(root.now);
      const std::vector<job::Event> events = root.node.events();
      const auto is_stall = [](const job::Event& e) {
        return e.kind == job::Event::Kind::kStalled;
      };
      if (std::any_of(events.begin(), events.end(), is_stall)) return true;
    }
    return false;
  };
  const auto push_and_ack = [&root](std::uint32_t block, std::uint64_t results) {
    root.deliver(root.push(1, block));
    (void)root.blocks_to(1, kResult);
    root.deliver(PacketBuilder::ack(wire::PacketType::kResultAck, root.round())
                     .sender(1)
                     .words(0, {results}));
  };
  push_and_ack(1, 0b10);
  CHECK_FALSE(is_given_up());
  push_and_ack(0, 0b11);
  CHECK(is_given_up());
}
