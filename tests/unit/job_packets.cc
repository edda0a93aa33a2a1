// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Fields that all packets of a job have.
#include <array>
#include <map>

#include "tests/support/catch.h"
#include "tests/support/core_node.h"
#include "tests/support/packet.h"
#include "tests/support/table_node.h"
#include "tests/support/two_workers.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

constexpr std::uint32_t kBlocks = 12;
constexpr std::array<std::uint16_t, 2> kChildren = {1, 2};
constexpr Instant kStart = Instant::from_ns(1'000'000'000);
constexpr std::uint32_t kElements = kBlocks * kMinBlockBytes / 4;

/// Checks that the packets to each node have consecutive numbers.
void check_numbers(const std::vector<Sent>& sent, std::map<std::uint16_t, std::uint32_t>& last) {
  for (const Sent& packet : sent) {
    CAPTURE(packet.to);
    CHECK(packet.seen().number == ++last[packet.to]);
  }
}

}  // namespace

TEST_CASE("packets to each node are numbered from 1 on, whatever their type") {
  CoreNode root(two_workers(0, kBlocks));
  const PacketBuilder::Round round{
      .geometry = Geometry::of(ElementType::kFloat32, kElements, kMinBlockBytes)};
  std::map<std::uint16_t, std::uint32_t> last;
  for (std::uint32_t block = 0; block < kBlocks; ++block) {
    const auto push = PacketBuilder::block(wire::PacketType::kPush, round, block);
    for (const std::uint16_t child : kChildren) {
      root.deliver(child, PacketBuilder(push).sender(child).bytes(), kStart);
    }
    if (block == kBlocks / 2) root.deliver(1, PacketBuilder(push).sender(1).bytes(), kStart);
    check_numbers(root.drain(kStart), last);
  }
  CHECK(root.job().counters().acks_sent == 3);
  CHECK(last[1] == kBlocks + 2);
  CHECK(last[2] == kBlocks + 1);
}

TEST_CASE("a block that is sent again has a new number") {
  CoreNode leaf(two_workers(1, kBlocks));
  REQUIRE(leaf.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  std::map<std::uint16_t, std::uint32_t> last;
  check_numbers(leaf.drain(kStart), last);
  const Instant later = kStart + Duration::seconds(1);
  leaf.node().tick(later);
  const std::vector<Sent> again = leaf.drain(later);
  REQUIRE(again.size() == 1);
  CHECK((again[0].seen().flags & wire::kFlagRetransmission) != 0);
  check_numbers(again, last);
}

TEST_CASE("an ack tells the oldest round that has not ended at its sender") {
  const auto oldest_told = [](TableNode& node, const PacketBuilder& push) {
    node.deliver(push);
    const auto ack = node.urgent_ack();
    REQUIRE(ack);
    return ack->ack.oldest_round;
  };
  constexpr std::uint32_t kRound = TableNode::kRound;
  constexpr std::uint8_t kAtOnce = wire::kFlagLast;
  TableNode node;
  CHECK(oldest_told(node, node.push(2, 0, 4).flags(kAtOnce)) == kRound);
  CHECK(oldest_told(node, node.push(2, 0, 8, kRound + 1).flags(kAtOnce)) == kRound);
  REQUIRE(node.finish(kRound));
  CHECK(oldest_told(node, node.push(2, 0, 4)) == kRound + 1);
}

TEST_CASE("an ack of results tells the oldest round that a node below is at") {
  TableNode node;
  const auto oldest_told = [&node](std::uint32_t block) {
    node.deliver(node.result(block).flags(wire::kFlagLast));
    const auto ack = node.urgent_ack();
    REQUIRE(ack);
    return ack->ack.oldest_round;
  };
  const auto say = [&node](std::uint16_t child, std::uint32_t oldest) {
    node.deliver(node.result_ack().sender(child).tree(0).oldest_round(oldest));
  };
  constexpr std::uint32_t kRound = TableNode::kRound;
  say(2, kRound);
  CHECK(oldest_told(0) == kRound - 1);  // the other child has told nothing
  say(3, kRound);
  CHECK(oldest_told(1) == kRound);
}

TEST_CASE("what is left of an earlier job of the same id keeps no packet of this one out") {
  // Packets are not authenticated here, so only the epoch tells the two jobs apart.
  CoreNode root(two_workers(0, kBlocks));
  const PacketBuilder::Round round{
      .geometry = Geometry::of(ElementType::kFloat32, kElements, kMinBlockBytes)};
  const auto push = PacketBuilder::block(wire::PacketType::kPush, round, 0).sender(1);
  const std::uint64_t old_number = 3 * hop::kReplayWindow;
  root.deliver(1, PacketBuilder(push).epoch(2).number(old_number).bytes(), kStart);
  CHECK(root.job().counters().drops[static_cast<std::size_t>(hop::Drop::kWrongEpoch)] == 1);
  root.deliver(1, PacketBuilder(push).number(1).bytes(), kStart);
  CHECK(root.job().counters().blocks_received == 1);
}
