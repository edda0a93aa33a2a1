// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// What a job does by timers when a peer falls silent.
#include <algorithm>

#include "dataplane/job/transmitter.h"
#include "tests/support/catch.h"
#include "tests/support/core_node.h"
#include "tests/support/packet.h"
#include "tests/support/table_node.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

constexpr std::uint32_t kElements = 2048;  // 16 blocks, which fill the first window
constexpr Instant kStart = Instant::from_ns(1'000'000'000);

job::JobConfig leaf() {
  job::JobConfig config;
  config.job = config.epoch = 1;
  config.self = 1;
  config.world_size = 2;
  config.block_bytes = kMinBlockBytes;
  config.round_bytes = 8192;
  config.peers = {{.node = 0}};
  config.trees = {{.member = true, .parent = hop::PeerIndex(0), .children = {}, .share = {0, 1}}};
  config.local_ranks = {{.arena = nullptr, .rank = 1}};
  return config;
}

struct Resent {
  Instant at;
  std::uint32_t block = 0;
};

/// Runs the node until `end`, and wakes only at its deadlines. Returns what it sends.
std::vector<Resent> listen(CoreNode& node, Instant now, Instant end) {
  std::vector<Resent> out;
  while (now < end) {
    const Instant next = node.node().next_deadline(now);
    REQUIRE(next < Instant::never());
    now = std::max(now + Duration::us(1), next);
    node.node().tick(now);
    for (const Sent& sent : node.drain(now)) out.push_back({now, sent.seen().block});
  }
  return out;
}

}  // namespace

TEST_CASE("a silent peer is asked again and again, with bounded pauses, one block at a time") {
  CoreNode node(leaf());
  REQUIRE(node.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  REQUIRE(node.drain(kStart).size() == 16);
  const std::vector<Resent> again = listen(node, kStart, kStart + Duration::seconds(2));
  // Probes go although the window is full of blocks that nobody acks.
  REQUIRE(again.size() >= 45);
  CHECK(again[0].at >= kStart + Duration::ms(20));
  CHECK(again[0].at <= kStart + Duration::ms(21));
  for (std::size_t i = 1; i < again.size(); ++i) {
    CHECK(again[i].at - again[i - 1].at >= Duration::ms(39));
    CHECK(again[i].at - again[i - 1].at <= Duration::ms(41));
    // A probe repeats the block that has waited longest, so the blocks take turns.
    CHECK(again[i].block != again[i - 1].block);
  }
  CHECK(node.job().counters().probes == again.size());
  CHECK(node.job().peers()[0].flow.window() == 2);
}

TEST_CASE("an answer ends the pause") {
  CoreNode node(leaf());
  REQUIRE(node.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  REQUIRE(node.drain(kStart).size() == 16);
  const Instant later = kStart + Duration::ms(200);
  REQUIRE_FALSE(listen(node, kStart, later).empty());
  const PacketBuilder::Round round{
      .geometry = Geometry::of(ElementType::kFloat32, kElements, kMinBlockBytes)};
  const auto ack = PacketBuilder::ack(wire::PacketType::kPushAck, round)
                       .sender(0)
                       .words(0, {1})
                       .echo_us(hop::clock_us(later - Duration::us(100)));
  node.deliver(0, ack.bytes(), later);
  // Blocks that the echo proves lost go at once, as far as the window allows.
  const std::vector<Resent> again = listen(node, later, later + Duration::ms(10));
  CHECK_FALSE(again.empty());
  for (const Resent& resent : again) CHECK(resent.block != 0);
}

TEST_CASE("a single late answer does not keep a silent peer from being asked often") {
  CoreNode node(leaf());
  REQUIRE(node.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  REQUIRE(node.drain(kStart).size() == 16);
  const Instant late = kStart + Duration::ms(600);
  const PacketBuilder::Round round{
      .geometry = Geometry::of(ElementType::kFloat32, kElements, kMinBlockBytes)};
  const auto ack = PacketBuilder::ack(wire::PacketType::kPushAck, round)
                       .sender(0)
                       .words(0, {1})
                       .echo_us(hop::clock_us(kStart));
  node.deliver(0, ack.bytes(), late);
  const std::vector<Resent> again = listen(node, late, late + Duration::seconds(3));
  std::vector<Duration> pauses;
  for (std::size_t i = 1; i < again.size(); ++i) pauses.push_back(again[i].at - again[i - 1].at);
  const auto is_long = [](Duration pause) { return pause > Duration::ms(400); };
  CHECK(std::count_if(pauses.begin(), pauses.end(), is_long) == job::kSilentAfterProbes);
  REQUIRE(pauses.size() > 30);
  CHECK(std::all_of(pauses.end() - 30, pauses.end(), [](Duration pause) {
    return pause >= Duration::ms(39) && pause <= Duration::ms(41);
  }));
}

TEST_CASE("an answer to later packets proves that the blocks of another round are lost") {
  constexpr std::uint32_t kHalf = kElements / 2;  // 8 blocks, so two rounds fill the window
  CoreNode node(leaf());
  REQUIRE(node.submit(0, 0, kHalf) == job::SubmitResult::kAccepted);
  REQUIRE(node.drain(kStart).size() == 8);
  const auto answer = [&](std::uint32_t number, Instant sent, Instant now) {
    const PacketBuilder::Round round{
        .id = number, .geometry = Geometry::of(ElementType::kFloat32, kHalf, kMinBlockBytes)};
    const auto ack = PacketBuilder::ack(wire::PacketType::kPushAck, round)
                         .sender(0)
                         .flags(wire::kFlagComplete)
                         .echo_us(hop::clock_us(sent));
    node.deliver(0, ack.bytes(), now);
  };
  // The receiver may still hold back the ack of round 0.
  const Instant soon = kStart + Duration::ms(2);
  REQUIRE(node.submit(0, 1, kHalf) == job::SubmitResult::kAccepted);
  REQUIRE(node.drain(soon).size() == 8);
  answer(1, soon, soon + Duration::ms(1));
  CHECK(listen(node, soon + Duration::ms(1), kStart + Duration::ms(5)).empty());
  // Packets that go now are late enough to prove a loss. So all of round 0 goes again, earlier than
  // a silent peer would be probed with one block.
  const Instant later = kStart + Duration::ms(5);
  REQUIRE(node.submit(0, 2, kHalf) == job::SubmitResult::kAccepted);
  REQUIRE(node.drain(later).size() == 8);
  answer(2, later, later + Duration::ms(1));
  const std::vector<Resent> again = listen(node, later + Duration::ms(1), kStart + Duration::ms(9));
  CHECK(again.size() == 8);
  CHECK(node.job().counters().blocks_suspected_lost == 8);
  CHECK(node.job().counters().probes == 0);
}

TEST_CASE("probes do not hide that their round is lost") {
  constexpr std::uint32_t kHalf = kElements / 2;
  CoreNode node(leaf());
  for (const std::uint32_t round : {0U, 1U}) {
    REQUIRE(node.submit(0, round, kHalf) == job::SubmitResult::kAccepted);
  }
  REQUIRE(node.drain(kStart).size() == 16);
  // Probes for both rounds go at the same times. The peer acks only blocks of the older round.
  std::uint64_t answered = 0;
  Instant now = kStart;
  while (now < kStart + Duration::ms(300)) {
    now = now + Duration::ms(1);
    node.node().tick(now);
    for (const Sent& sent : node.drain(now)) {
      if (sent.seen().round != 0) continue;
      answered |= std::uint64_t{1} << sent.seen().block;
      const PacketBuilder::Round round{
          .geometry = Geometry::of(ElementType::kFloat32, kHalf, kMinBlockBytes)};
      const auto ack = PacketBuilder::ack(wire::PacketType::kPushAck, round)
                           .sender(0)
                           .words(0, {answered})
                           .echo_us(hop::clock_us(now));
      node.deliver(0, ack.bytes(), now + Duration::us(100));
    }
  }
  CHECK(answered == 0xff);
  CHECK(node.job().counters().blocks_suspected_lost >= 8);
}

TEST_CASE("nothing in flight means nothing to wait for") {
  CoreNode node(leaf());
  CHECK(node.node().next_deadline(kStart) == Instant::never());
  REQUIRE(node.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  CHECK(node.node().next_deadline(kStart) <= kStart);
  REQUIRE(node.drain(kStart).size() == 16);
  CHECK(node.node().next_deadline(kStart) <= kStart + Duration::ms(1));
}

TEST_CASE("a node sums as many ranks of its own as it may have, and names those that are missing") {
  job::JobConfig config = leaf();
  config.self = 0;
  config.world_size = kMaxLocalRanks;
  config.hosts = {{.node = 0, .ranks = kMaxLocalRanks}};
  config.peers.clear();
  config.trees = {{.member = true, .parent = hop::kNoPeer, .children = {}, .share = {0, 1}}};
  config.local_ranks.clear();
  for (std::uint16_t rank = 0; rank < kMaxLocalRanks; ++rank)
    config.local_ranks.push_back({.arena = nullptr, .rank = rank});
  CoreNode node(std::move(config));
  LocalRankBits missing = ~LocalRankBits{0};
  for (std::size_t rank = 0; rank < kMaxLocalRanks; ++rank) {
    REQUIRE(node.submit(rank, 0, kElements) == job::SubmitResult::kAccepted);
    missing &= missing - 1;
    (void)node.drain(kStart);
    CHECK(node.job().waiting().local_missing == missing);
  }
  CHECK(node.events().size() == kMaxLocalRanks);
  CHECK(node.holds_sum(0, 0, kElements));
  CHECK(node.holds_sum(kMaxLocalRanks - 1, 0, kElements));
}

TEST_CASE("what waits is named: the round, the rank, the child") {
  TableNode stage;
  job::Waiting waiting = stage.core().job().waiting();
  CHECK(waiting.any);
  CHECK(waiting.round == TableNode::kRound);
  CHECK(waiting.local_missing == 0);
  CHECK(waiting.silent_count == 0);
  REQUIRE(stage.finish(TableNode::kRound));
  stage.deliver(stage.push(3, 0, 8, TableNode::kRound + 1));
  waiting = stage.core().job().waiting();
  CHECK(waiting.round == TableNode::kRound + 1);
  CHECK(waiting.local_missing == 1);
  REQUIRE(waiting.silent_count == 1);
  CHECK(waiting.silent_nodes[0] == 2);
}

TEST_CASE("a submission is taken, held or refused") {
  CoreNode node(leaf());
  using job::SubmitResult;
  CHECK(node.submit(0, 0, 0) == SubmitResult::kRejected);
  CHECK(node.job().submit(0, 0, 2049, ElementType::kFloat32) == SubmitResult::kRejected);
  CHECK(node.job().submit(0, 0, 0xffff'ffff, ElementType::kInt64) == SubmitResult::kRejected);
  CHECK(node.job().submit(0, 16, 1, ElementType::kFloat32) == SubmitResult::kBusy);
  CHECK(node.job().submit(0, 0xffff'fff0, 1, ElementType::kFloat32) == SubmitResult::kRejected);
  CHECK(node.submit(0, 0, kElements) == SubmitResult::kAccepted);
  CHECK(node.submit(0, 0, kElements) == SubmitResult::kRejected);
  CHECK(node.submit(0, 15, 1) == SubmitResult::kAccepted);
}
