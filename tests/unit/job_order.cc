// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The order in which a job's blocks leave.
#include <algorithm>
#include <set>

#include "tests/support/catch.h"
#include "tests/support/core_node.h"
#include "tests/support/packet.h"
#include "tests/support/table_node.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

constexpr std::uint16_t kHosts = 9;
constexpr std::uint32_t kBlocks = 12;
constexpr std::uint32_t kElements = kBlocks * 128;
constexpr Instant kStart = Instant::from_ns(1'000'000'000);

job::JobConfig leaf_config(std::uint16_t self, std::uint32_t first_round) {
  job::JobConfig config;
  config.job = config.epoch = 1;
  config.self = self;
  config.world_size = kHosts;
  for (std::uint16_t node = 0; node < kHosts; ++node) {
    config.hosts.push_back({.node = node, .ranks = 1});
  }
  config.first_round = first_round;
  config.block_bytes = kMinBlockBytes;
  config.round_bytes = kBlocks * kMinBlockBytes;
  config.peers = {{.node = 0}};
  config.trees = {{.member = true, .parent = hop::PeerIndex(0), .children = {}, .share = {0, 1}}};
  config.local_ranks = {{.arena = nullptr, .rank = self}};
  return config;
}

CoreNode leaf(std::uint16_t self, std::uint32_t first_round) {
  return CoreNode(leaf_config(self, first_round));
}

std::vector<std::uint32_t> order(std::uint16_t self, std::uint32_t round) {
  CoreNode node = leaf(self, round);
  REQUIRE(node.submit(0, round, kElements) == job::SubmitResult::kAccepted);
  std::vector<std::uint32_t> blocks;
  for (const Sent& sent : node.drain(kStart)) blocks.push_back(sent.seen().block);
  return blocks;
}

}  // namespace

TEST_CASE("all senders of a round send its blocks in the same order") {
  for (const std::uint32_t round : {0U, 1U, 17U, 0xffff'ffffU}) {
    const std::vector<std::uint32_t> first = order(1, round);
    CHECK(first.size() == kBlocks);
    for (std::uint16_t self = 2; self < kHosts; ++self) CHECK(order(self, round) == first);
  }
}

TEST_CASE("the tail of a round is another one in every round") {
  std::set<std::uint32_t> tails;
  for (std::uint32_t round = 0; round < kBlocks; ++round) tails.insert(order(1, round).back());
  CHECK(tails.size() == kBlocks);
}

TEST_CASE("an older round goes before a newer one, whatever was submitted first") {
  CoreNode node = leaf(1, 0xffff'ffff);
  REQUIRE(node.submit(0, 0, 128) == job::SubmitResult::kAccepted);
  REQUIRE(node.submit(0, 0xffff'ffff, 128) == job::SubmitResult::kAccepted);
  const std::vector<Sent> sent = node.drain(kStart);
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].seen().round == 0xffff'ffff);
  CHECK(sent[1].seen().round == 0);
}

TEST_CASE("trees that share a path send in proportion to their shares of a round") {
  job::JobConfig config = leaf_config(1, 0);
  config.trees[0].share = {0, 1};
  config.trees.push_back(config.trees[0]);
  config.trees[1].share = {1, 2};
  CoreNode node(std::move(config));
  REQUIRE(node.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  std::size_t sent_of[2] = {};
  for (const Sent& sent : node.drain(kStart)) {
    ++sent_of[sent.seen().tree];
    CHECK(sent_of[1] <= 2 * sent_of[0] + 2);
    CHECK(2 * sent_of[0] <= sent_of[1] + 2);
  }
  CHECK(sent_of[0] == kBlocks / 3);
  CHECK(sent_of[1] == kBlocks * 2 / 3);
}

TEST_CASE("a peer is looked at only after something has changed for it") {
  TableNode node;
  const Bitmap& to_poll = node.core().job().peers_to_poll();
  REQUIRE(node.core().drain(node.now()).empty());
  CHECK(to_poll.count() == 0);  // blocks are in flight to two peers, and none waits
  node.deliver(node.push_ack().words(0, {1}));
  CHECK(to_poll.count() == 1);
  (void)node.core().drain(node.now());
  CHECK(to_poll.count() == 0);
  node.deliver(node.push(2, 0, 4));
  node.deliver(node.push(3, 0, 4));
  CHECK(to_poll.count() == 1);  // the sum of block 4 waits for its parent
  CHECK(node.core().drain(node.now()).size() == 1);
  CHECK(to_poll.count() == 0);
}

namespace {

/// Node 1 of two nodes with a rank each. Each node is the root of a tree.
job::JobConfig root_of_two() {
  job::JobConfig config = leaf_config(1, 0);
  config.world_size = 2;
  config.hosts = {{.node = 0, .ranks = 1}, {.node = 1, .ranks = 1}};
  aggregate::TreeConfig theirs;
  theirs.member = true;
  theirs.parent = hop::PeerIndex(0);
  theirs.share = {0, 1};
  theirs.root_host = 0;
  aggregate::TreeConfig own;
  own.member = true;
  own.children = {{.peer = hop::PeerIndex(0), .ranks = 1, .hosts = {0}}};
  own.share = {1, 1};
  own.root_host = 1;
  config.trees = {theirs, own};
  return config;
}

/// Returns the types of the blocks that the node sends when its rank submits this many rounds.
/// Node 0 has already begun them.
std::vector<wire::PacketType> types_of_blocks(Operation operation, std::uint32_t rounds) {
  CoreNode node(root_of_two());
  Statement said{.elements = kElements, .operation = operation};
  if (operation == Operation::kBroadcast) said.source = 1;
  for (std::uint32_t id = 0; id < rounds; ++id) {
    const PacketBuilder::Round round{.id = id, .geometry = Geometry::of(said, kMinBlockBytes, 2)};
    for (std::uint32_t block = kBlocks / 2; block < kBlocks; ++block) {
      PacketBuilder push = PacketBuilder::block(wire::PacketType::kPush, round, block);
      push.tree(1).sender(0);
      if (!all_contribute(operation)) push.empty();
      node.deliver(0, push.bytes(), kStart);
      if (!all_contribute(operation)) break;  // one empty push says that node 0 is in the round
    }
  }
  node.drain(kStart);
  for (std::uint32_t id = 0; id < rounds; ++id) {
    REQUIRE(node.job().submit(0, id, said) == job::SubmitResult::kAccepted);
  }
  std::vector<wire::PacketType> types;
  for (const Sent& sent : node.drain(kStart)) types.push_back(sent.seen().type);
  return types;
}

}  // namespace

TEST_CASE("results of sums go before pushes, and pushes of copies before results") {
  using wire::PacketType;
  for (const Operation operation : {Operation::kAllReduce, Operation::kBroadcast}) {
    CAPTURE(operation_name(operation));
    const std::vector<PacketType> types = types_of_blocks(operation, 1);
    const bool sums = all_contribute(operation);
    REQUIRE(std::ranges::count(types, PacketType::kResult) == kBlocks / 2);
    REQUIRE(std::ranges::count(types, PacketType::kPush) == kBlocks / 2);
    CHECK(types.front() == (sums ? PacketType::kResult : PacketType::kPush));
    CHECK(std::ranges::is_partitioned(types, [&](PacketType t) { return t == types.front(); }));
  }
}

TEST_CASE("a push that opens a tree goes before the results of older rounds") {
  using wire::PacketType;
  const std::vector<PacketType> types = types_of_blocks(Operation::kAllGather, 2);
  REQUIRE(types.size() == 2 + kBlocks);
  CHECK(std::count(types.begin(), types.begin() + 2, PacketType::kPush) == 2);
}

TEST_CASE("in forward order an iteration's newest round goes first, after all older iterations") {
  job::JobConfig config = leaf_config(1, 0xffff'ffff);
  config.forward_order = true;
  CoreNode node(std::move(config));
  const auto submit = [&](std::uint32_t round, std::uint32_t bucket) {
    REQUIRE(node.job().submit(0, round, 128, ElementType::kFloat32, bucket) ==
            job::SubmitResult::kAccepted);
  };
  submit(0xffff'ffff, 1);
  REQUIRE(node.drain(kStart).size() == 1);
  const PacketBuilder::Round first{
      .id = 0xffff'ffff, .geometry = Geometry::of(ElementType::kFloat32, 128, kMinBlockBytes, 1)};
  const auto result =
      PacketBuilder::block(wire::PacketType::kResult, first, 0).sender(0).contributors(kHosts);
  node.deliver(0, result.bytes(), kStart);
  REQUIRE(node.drain(kStart).size() == 1);  // the ack
  submit(0, 2);
  submit(1, 0);  // no bucket: it belongs to the present iteration
  submit(2, 1);  // the next iteration
  submit(3, 3);
  std::vector<std::uint32_t> rounds;
  for (const Sent& sent : node.drain(kStart)) rounds.push_back(sent.seen().round);
  CHECK(rounds == std::vector<std::uint32_t>{1, 0, 3, 2});
}

TEST_CASE("the last block of an edge says so, and a retransmission is marked") {
  CoreNode node = leaf(1, 0);
  REQUIRE(node.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  const std::vector<Sent> sent = node.drain(kStart);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const bool last = (sent[i].seen().flags & wire::kFlagLast) != 0;
    CHECK(last == (i + 1 == sent.size()));
    CHECK((sent[i].seen().flags & wire::kFlagRetransmission) == 0);
  }
  const Instant later = kStart + Duration::ms(30);
  node.node().tick(later);
  const std::vector<Sent> again = node.drain(later);
  REQUIRE(again.size() == 1);
  CHECK((again[0].seen().flags & wire::kFlagRetransmission) != 0);
  CHECK((again[0].seen().flags & wire::kFlagLast) != 0);
}

TEST_CASE(
    "the second copy of a repair waits for everything else, and only the oldest round has one") {
  CoreNode node = leaf(1, 0);
  REQUIRE(node.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  const std::vector<Sent> first = node.drain(kStart);
  REQUIRE(first.size() == kBlocks);
  REQUIRE(node.submit(0, 1, kElements) == job::SubmitResult::kAccepted);
  const std::size_t begun = node.drain(kStart).size();
  REQUIRE(begun < kBlocks);
  // The path has a long round trip. The first block of the older round is lost.
  const std::uint16_t lost = first[0].seen().block;
  const PacketBuilder::Round round{
      .geometry = Geometry::of(ElementType::kFloat32, kElements, kMinBlockBytes)};
  const std::uint64_t arrived = ((std::uint64_t{1} << kBlocks) - 1) & ~(std::uint64_t{1} << lost);
  const auto ack = PacketBuilder::ack(wire::PacketType::kPushAck, round)
                       .sender(0)
                       .words(0, {arrived})
                       .echo_us(hop::clock_us(kStart + Duration::ms(6)));
  const Instant now = kStart + Duration::ms(26);
  node.deliver(0, ack.bytes(), now);
  const std::vector<Sent> sent = node.drain(now);
  const std::size_t copy = 1 + kBlocks - begun;
  REQUIRE(sent.size() > copy);
  for (const std::size_t i : {std::size_t{0}, copy}) {
    CHECK(sent[i].seen().round == 0);
    CHECK(sent[i].seen().block == lost);
    CHECK((sent[i].seen().flags & wire::kFlagRetransmission) != 0);
  }
  for (std::size_t i = 1; i < copy; ++i) {
    CHECK(sent[i].seen().round == 1);
    CHECK((sent[i].seen().flags & wire::kFlagRetransmission) == 0);
  }
  // The last blocks of the younger round are not sent a second time.
  for (std::size_t i = copy; i < sent.size(); ++i) CHECK(sent[i].seen().round == 0);
  // The packets do not count the copy as a waiting block.
  CHECK(sent[copy - 1].seen().hop.waiting_blocks == 1);
  CHECK(sent.back().seen().hop.waiting_blocks == 0);
}
