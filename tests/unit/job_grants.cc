// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Grants in packets: what a sender sends without and with credit, and which grants a receiver
// sends.
#include "dataplane/hop/credit_line.h"
#include "tests/support/catch.h"
#include "tests/support/core_node.h"
#include "tests/support/packet.h"

using namespace gradplane;
using namespace gradplane::testing;
using hop::CreditLine;

namespace {

constexpr Instant kStart = Instant::from_ns(1'000'000'000);
constexpr std::uint32_t kBlocks = 64;
constexpr std::uint32_t kElements = kBlocks * kMinBlockBytes / 4;

job::JobConfig config_of(std::uint16_t self) {
  job::JobConfig config;
  config.job = 1;
  config.epoch = 1;
  config.self = self;
  config.world_size = 2;
  config.block_bytes = kMinBlockBytes;
  config.round_bytes = kBlocks * kMinBlockBytes;
  config.grants = true;
  config.peers = {{.node = static_cast<std::uint16_t>(1 - self)}};
  config.local_ranks = {{.arena = nullptr, .rank = self}};
  return config;
}

/// Node 1, which pushes to node 0.
job::JobConfig leaf() {
  job::JobConfig config = config_of(1);
  config.trees = {{.member = true, .parent = hop::PeerIndex(0), .children = {}, .share = {0, 1}}};
  return config;
}

/// Node 0, to which nodes 1 and 2 push.
job::JobConfig root() {
  job::JobConfig config = config_of(0);
  config.world_size = 3;
  config.peers.push_back({.node = 2});
  config.trees = {{.member = true,
                   .parent = hop::kNoPeer,
                   .children = {{hop::PeerIndex(0), 1}, {hop::PeerIndex(1), 1}},
                   .share = {0, 1}}};
  return config;
}

PacketBuilder::Round a_round() {
  return {.job = 1,
          .epoch = 1,
          .id = 0,
          .geometry = Geometry::of(ElementType::kFloat32, kElements, kMinBlockBytes, 0)};
}

void grant(CoreNode& node, std::uint32_t total, std::uint32_t unscheduled = 1) {
  node.deliver(
      0,
      PacketBuilder::grant(a_round(), {.total_blocks = total, .unscheduled_blocks = unscheduled})
          .sender(0)
          .bytes(),
      kStart);
}

std::vector<SeenPacket> pushes(CoreNode& node, Instant now) {
  std::vector<SeenPacket> out;
  for (const Sent& sent : node.drain(now)) {
    if (sent.seen().type == wire::PacketType::kPush) out.push_back(sent.seen());
  }
  return out;
}

std::vector<wire::Grant> grants_in(CoreNode& node, Instant now) {
  std::vector<wire::Grant> out;
  for (const Sent& sent : node.drain(now)) {
    if (sent.seen().type == wire::PacketType::kGrant) out.push_back(sent.seen().grant);
  }
  return out;
}

}  // namespace

TEST_CASE("a sender begins with what needs no grant, and says what waits") {
  CoreNode node(leaf());
  REQUIRE(node.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  const auto sent = pushes(node, kStart);
  REQUIRE(sent.size() == CreditLine::kFirstUnscheduledBlocks);
  for (std::uint32_t i = 0; i < sent.size(); ++i) {
    CHECK(sent[i].hop.sent_blocks == i + 1);
    CHECK(sent[i].hop.waiting_blocks == kBlocks - 1 - i);
  }
}

TEST_CASE("a sender sends what was granted, once, and no more") {
  CoreNode node(leaf());
  REQUIRE(node.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  grant(node, 6);
  CHECK(pushes(node, kStart).size() == 6);
  grant(node, 6);
  grant(node, 5);  // an older grant, which came late
  CHECK(pushes(node, kStart).empty());
  CHECK(node.job().next_data() == Instant::never());
  grant(node, 11);
  CHECK(pushes(node, kStart).size() == 5);
}

TEST_CASE("how much needs no grant is what the receiver says") {
  CoreNode node(leaf());
  grant(node, 0, 9);
  REQUIRE(node.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  CHECK(pushes(node, kStart).size() == 9);
}

TEST_CASE("a grant of more than any peer may give is refused") {
  CoreNode node(leaf());
  REQUIRE(node.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  const std::size_t first = pushes(node, kStart).size();
  grant(node, static_cast<std::uint32_t>(first) + CreditLine::kMaxCreditBlocks + 1);
  CHECK(node.drops(hop::Drop::kBadGrant) == 1);
  CHECK(pushes(node, kStart).empty());
}

TEST_CASE("a probe needs no grant") {
  CoreNode node(leaf());
  REQUIRE(node.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  (void)pushes(node, kStart);
  grant(node, 0, 1);  // more blocks than that are in flight
  const Instant later = kStart + Duration::seconds(1);
  node.node().tick(later);
  CHECK(pushes(node, later).size() >= 1);
}

TEST_CASE("credit wraps around 2^32") {
  CreditLine credit(0, 1, 0xffff'fff0);
  REQUIRE(credit.on_total(0xffff'fff8));
  CHECK(credit.credit() == 8);
  REQUIRE(credit.on_total(4));
  CHECK(credit.credit() == 20);
  REQUIRE(credit.on_total(0xffff'fff9));
  CHECK(credit.credit() == 20);
  for (int i = 0; i < 20; ++i) credit.on_sent(kStart, 600);
  CHECK(credit.credit() == 0);
  CHECK(credit.sent() == 4);
}

TEST_CASE("what needs no grant goes at an even share, what was granted at once") {
  CreditLine credit(8'000'000);
  credit.on_unscheduled(100);
  for (int n = 0; n < 20; ++n) credit.on_sent(kStart, 1500);
  CHECK(credit.next_send(20) > kStart);
  REQUIRE(credit.on_total(credit.sent() + 1));
  CHECK(credit.next_send(20) <= kStart);
}

TEST_CASE("many senders that begin at once begin with fewer blocks") {
  const auto at_once = [](std::size_t senders) {
    CreditLine credit(8'000'000, senders);
    credit.on_unscheduled(100);
    int blocks = 0;
    for (; credit.next_send(0) <= kStart && blocks < 100; ++blocks) credit.on_sent(kStart, 1500);
    return blocks;
  };
  CHECK(at_once(1) == at_once(8));
  CHECK(at_once(8) == 4);
  CHECK(at_once(20) == 2);
  CHECK(at_once(256) == 1);
}

TEST_CASE("a fast share makes up for a nap") {
  CreditLine credit(200'000'000);
  credit.on_unscheduled(100);
  int blocks = 0;
  for (; credit.next_send(0) <= kStart && blocks < 100; ++blocks) credit.on_sent(kStart, 1500);
  CHECK(blocks * 1500 >= 25'000);  // the bytes of a millisecond
  CHECK(blocks * 1500 <= 28'000);
}

TEST_CASE("a receiver grants what its silent peers leave, to who has said that more waits") {
  CoreNode node(root());
  REQUIRE(node.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  CHECK(grants_in(node, kStart).empty());
  node.deliver(1,
               PacketBuilder::block(wire::PacketType::kPush, a_round(), 0)
                   .sender(1)
                   .demand(1, kBlocks - 1)
                   .bytes(),
               kStart);
  const auto sent = grants_in(node, kStart);
  REQUIRE(!sent.empty());
  CHECK(sent.back().total_blocks > 1);
  CHECK(sent.back().total_blocks <= kBlocks);
  CHECK(sent.back().unscheduled_blocks >= 1);
  CHECK(node.job().counters().grants_sent == sent.size());
}

TEST_CASE("an ack says the same as a grant") {
  CoreNode node(root());
  REQUIRE(node.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  node.deliver(1,
               PacketBuilder::block(wire::PacketType::kPush, a_round(), 0)
                   .sender(1)
                   .flags(wire::kFlagLast)
                   .demand(1, 0)
                   .bytes(),
               kStart);
  for (const Sent& packet : node.drain(kStart)) {
    if (packet.seen().type != wire::PacketType::kPushAck) continue;
    CHECK(packet.seen().ack.unscheduled_blocks >= 1);
    CHECK(packet.seen().ack.total_blocks == 1);
    return;
  }
  FAIL("no ack");
}

TEST_CASE("a job that leaves takes its peers with it") {
  CoreNode node(root());
  for (std::size_t n = 0; n < 2 * kMaxJobs; ++n) {
    node.node().remove(&node.job());
    REQUIRE(node.node().add(&node.job()) == JobRefusal::kNone);
    REQUIRE(node.job().grant_index().index() < kMaxJobs);
  }
  CHECK(node.job().sources().size() == 2);
}
