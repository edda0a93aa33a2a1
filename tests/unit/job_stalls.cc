// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// When a job reports that a round will never end, which node it names, and when it reports nothing.
#include <array>
#include <cstring>
#include <map>
#include <set>

#include "tests/support/catch.h"
#include "tests/support/core_node.h"
#include "tests/support/packet.h"
#include "tests/support/two_workers.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

constexpr std::uint32_t kBlocks = 4;
constexpr std::uint32_t kBlockElements = kMinBlockBytes / 4;
constexpr std::uint32_t kElements = kBlocks * kBlockElements;
constexpr std::array<std::uint16_t, 2> kChildren = {1, 2};
constexpr Duration kLimit = Duration::seconds(6);
constexpr std::uint64_t kAll = (1U << kBlocks) - 1;

/// Node 0 is the root, with rank 0. Nodes 1 and 2 have a rank each.
job::JobConfig config_of(std::uint16_t self) {
  job::JobConfig config = testing::two_workers(self, kBlocks);
  config.world_size = 3;
  config.stall_after = kLimit;
  config.local_ranks = {{.arena = nullptr, .rank = self}};
  return config;
}

/// A node, a clock, and the packets of the other nodes.
class Stage {
 public:
  explicit Stage(std::uint16_t self) : Stage(config_of(self)) {}
  explicit Stage(const job::JobConfig& config) : node(config) {}

  void submit(std::uint32_t id = 0) {
    REQUIRE(node.submit(0, id, kElements) == job::SubmitResult::kAccepted);
  }

  /// Lets time pass for a node that polls. Its packets go to `sent`, its events to `events`.
  void pass(Duration time) {
    for (const Instant end = now + time; now < end;) {
      now = now + Duration::ms(10);
      node.node().tick(now);
      for (Sent& packet : node.drain(now)) {
        if (answers && packet.seen().type == wire::PacketType::kPush) answer(packet);
        sent.push_back(std::move(packet));
      }
      for (const job::Event& event : node.events()) events.push_back(event);
    }
  }

  void push(std::uint16_t child, std::uint32_t block) {
    node.deliver(child, data(wire::PacketType::kPush, block).sender(child).bytes(), now);
  }
  void result(std::uint32_t block) {
    node.deliver(0, data(wire::PacketType::kResult, block).contributors(3).bytes(), now);
  }
  PacketBuilder ack(wire::PacketType type, std::uint16_t from, std::uint64_t blocks) const {
    return PacketBuilder::ack(type, round()).sender(from).words(0, {blocks});
  }
  void deliver(const PacketBuilder& packet) { node.deliver(packet.sender(), packet.bytes(), now); }

  const job::Event& only_event() const {
    REQUIRE(events.size() == 1);
    REQUIRE(events[0].kind == job::Event::Kind::kStalled);
    CHECK(events[0].round == 0);
    return events[0];
  }

  CoreNode node;
  Instant now = Instant::from_ns(1'000'000'000);
  bool answers = false;  // the root acks each push
  std::vector<Sent> sent;
  std::vector<job::Event> events;

 private:
  static PacketBuilder::Round round() {
    return {.geometry = Geometry::of(ElementType::kFloat32, kElements, kMinBlockBytes)};
  }
  PacketBuilder data(wire::PacketType type, std::uint32_t block) const {
    return PacketBuilder::block(type, round(), block).timestamp_us(hop::clock_us(now));
  }
  void answer(const Sent& push) {
    const SeenPacket h = push.seen();
    PacketBuilder::Round of = round();
    of.id = h.round;
    acked[h.round] |= std::uint64_t{1} << h.block;
    deliver(PacketBuilder::ack(wire::PacketType::kPushAck, of)
                .sender(0)
                .words(0, {acked[h.round]})
                .echo_us(h.timestamp_us));
  }
  std::map<std::uint32_t, std::uint64_t> acked;
};

}  // namespace

TEST_CASE("a parent that acks nothing is named after the limit, not before") {
  Stage leaf(1);
  leaf.submit();
  leaf.pass(kLimit - Duration::ms(200));
  CHECK(leaf.events.empty());
  leaf.pass(Duration::ms(400));
  const job::Event& event = leaf.only_event();
  CHECK(event.node == 0);
  CHECK(event.stall.reason == Stall::Reason::kPushesUnacked);
  CHECK(event.stall.blocks == kBlocks);
  CHECK(event.stall.quiet >= kLimit);
}

TEST_CASE("each ack that tells something new is time") {
  Stage leaf(1);
  leaf.submit();
  for (std::uint64_t blocks : {1U, 3U, 7U}) {
    leaf.pass(kLimit - Duration::ms(500));
    leaf.deliver(leaf.ack(wire::PacketType::kPushAck, 0, blocks));
  }
  CHECK(leaf.events.empty());
  leaf.pass(kLimit - Duration::ms(500));
  leaf.deliver(leaf.ack(wire::PacketType::kPushAck, 0, 7));  // no new blocks
  leaf.pass(Duration::seconds(1));
  CHECK(leaf.only_event().stall.blocks == 1);
}

TEST_CASE("a node that was stopped does not take the time for a stall") {
  Stage leaf(1);
  leaf.submit();
  leaf.pass(Duration::ms(100));
  leaf.now = leaf.now + Duration::seconds(600);
  leaf.pass(kLimit - Duration::ms(500));
  CHECK(leaf.events.empty());
  leaf.pass(Duration::ms(500));
  CHECK(leaf.only_event().stall.reason == Stall::Reason::kPushesUnacked);
}

TEST_CASE("if the job is still there it is told again") {
  Stage leaf(1);
  leaf.submit();
  leaf.pass(kLimit * 3 + Duration::seconds(1));
  CHECK(leaf.events.size() == 3);
}

TEST_CASE("who waits for results alone asks with one block after another, and waits on") {
  Stage leaf(1);
  leaf.answers = true;
  leaf.submit();
  leaf.pass(Duration::ms(100));
  leaf.result(1);
  leaf.sent.clear();
  leaf.pass(Duration::seconds(600));
  CHECK(leaf.events.empty());
  CHECK(leaf.sent.size() >= 590);
  CHECK(leaf.sent.size() <= 605);
  std::set<std::uint32_t> asked;
  for (const Sent& packet : leaf.sent) {
    const SeenPacket h = packet.seen();
    if (h.type != wire::PacketType::kPush) continue;  // skips the ack of the result
    asked.insert(h.block);
    float first = 0;
    std::memcpy(&first, packet.bytes.data() + testing::kPayloadAt, sizeof first);
    CHECK(first == contribution(0, 1, h.block * kBlockElements));
  }
  // Block 1 is not asked for: its result has replaced the contribution.
  CHECK(asked == std::set<std::uint32_t>{0, 2, 3});
}

TEST_CASE("a parent that answers no question is named") {
  Stage leaf(1);
  leaf.submit();
  leaf.pass(Duration::ms(10));
  leaf.deliver(leaf.ack(wire::PacketType::kPushAck, 0, kAll));
  leaf.pass(kLimit + hop::kAskInterval - Duration::ms(200));
  CHECK(leaf.events.empty());
  leaf.pass(Duration::seconds(2));
  const job::Event& event = leaf.only_event();
  CHECK(event.stall.reason == Stall::Reason::kUnanswered);
  CHECK(event.stall.blocks == kBlocks);
}

TEST_CASE("an answer that lacks what was acked ends the job at once") {
  Stage leaf(1);
  leaf.submit();
  leaf.pass(Duration::ms(10));
  leaf.deliver(leaf.ack(wire::PacketType::kPushAck, 0, kAll));
  leaf.sent.clear();
  leaf.pass(hop::kAskInterval + Duration::ms(200));
  REQUIRE_FALSE(leaf.sent.empty());
  const std::uint32_t asked_us = leaf.sent[0].seen().timestamp_us;
  // The parent made this answer before the question came, so it may lack blocks that were acked
  // meanwhile.
  leaf.deliver(leaf.ack(wire::PacketType::kPushAck, 0, 2).echo_us(asked_us - 1));
  leaf.pass(Duration::ms(20));
  CHECK(leaf.events.empty());
  leaf.deliver(leaf.ack(wire::PacketType::kPushAck, 0, 2).echo_us(asked_us));
  leaf.pass(Duration::ms(20));
  const job::Event& event = leaf.only_event();
  CHECK(event.stall.reason == Stall::Reason::kDisputed);
  CHECK(event.stall.blocks == kBlocks - 1);
}

TEST_CASE("a parent may not end a round before we have its results") {
  Stage leaf(1);
  leaf.submit();
  leaf.pass(Duration::ms(10));
  leaf.result(0);
  leaf.deliver(
      leaf.ack(wire::PacketType::kPushAck, 0, 0).flags(wire::kFlagComplete | wire::kFlagEnded));
  leaf.pass(Duration::ms(20));
  const job::Event& event = leaf.only_event();
  CHECK(event.stall.reason == Stall::Reason::kDisputed);
  CHECK(event.stall.blocks == kBlocks - 1);
}

TEST_CASE("a round that has ended is answered as such") {
  Stage root(0);
  root.submit();
  for (std::uint32_t block = 0; block < kBlocks; ++block) {
    for (const std::uint16_t child : kChildren) root.push(child, block);
  }
  root.pass(Duration::ms(100));
  for (const std::uint16_t child : kChildren) {
    root.deliver(root.ack(wire::PacketType::kResultAck, child, kAll));
  }
  root.sent.clear();
  root.push(1, 0);
  root.pass(Duration::ms(10));
  REQUIRE(root.sent.size() == 1);
  constexpr auto kSays = wire::kFlagComplete | wire::kFlagEnded | wire::kFlagSound;
  CHECK(root.sent[0].seen().flags == kSays);
}

TEST_CASE("a child of which nothing has come is waited for") {
  Stage root(0);
  root.submit();
  for (std::uint32_t block = 0; block < kBlocks; ++block) root.push(1, block);
  root.pass(Duration::seconds(600));
  CHECK(root.events.empty());
}

TEST_CASE("a child whose blocks stop is named, whoever else is still to come") {
  Stage root(0);
  root.submit();
  root.push(1, 2);
  root.pass(kLimit + Duration::ms(300));
  const job::Event& event = root.only_event();
  CHECK(event.node == 1);
  CHECK(event.stall.reason == Stall::Reason::kBlocksMissing);
  CHECK(event.stall.blocks == kBlocks - 1);
}

TEST_CASE("a child that takes part and acks no results is named") {
  Stage root(0);
  root.submit();
  for (std::uint32_t block = 0; block < kBlocks; ++block) {
    for (const std::uint16_t child : kChildren) root.push(child, block);
  }
  root.pass(Duration::ms(100));
  root.deliver(root.ack(wire::PacketType::kResultAck, 1, kAll));
  root.events.clear();  // the round is done for the node's own rank
  root.pass(kLimit + Duration::ms(300));
  const job::Event& event = root.only_event();
  CHECK(event.node == 2);
  CHECK(event.stall.reason == Stall::Reason::kResultsUnacked);
  CHECK(event.stall.blocks == kBlocks);
}

TEST_CASE("nothing is asked and nothing is told where no limit is set") {
  job::JobConfig config = config_of(1);
  config.stall_after = {};
  CoreNode node(std::move(config));
  REQUIRE(node.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  Instant now = Instant::from_ns(1'000'000'000);
  for (int n = 0; n < 10'000; ++n) {
    now = now + Duration::ms(10);
    node.node().tick(now);
    (void)node.drain(now);
  }
  CHECK(node.events().empty());
}

TEST_CASE("questions take no turn from blocks that wait to go to the same parent") {
  // The path carries one block in a second. A controller may set such a rate when a path has become
  // longer.
  job::JobConfig config = config_of(1);
  constexpr std::uint64_t kBlockBits = (kMinBlockBytes + 200) * 8;
  config.peers[0].rates.rate_bits_per_second = kBlockBits;
  Stage leaf(config);
  leaf.answers = true;
  leaf.submit(0);
  leaf.pass(kLimit);
  leaf.submit(1);
  leaf.pass(kLimit);
  CHECK(leaf.events.empty());
  std::set<std::uint32_t> of_the_newer;
  for (const Sent& packet : leaf.sent) {
    if (packet.seen().round == 1) of_the_newer.insert(packet.seen().block);
  }
  CHECK(of_the_newer.size() == kBlocks);
}
