// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// What a flow and a job tell their controllers, and how they apply the controllers' decisions.
#include "dataplane/congestion/dctcp.h"
#include "dataplane/hop/flow.h"
#include "tests/support/catch.h"
#include "tests/support/core_node.h"
#include "tests/support/packet.h"

using namespace gradplane;
using namespace gradplane::testing;
using congestion::Dctcp;
using congestion::Reason;
using hop::Flow;

namespace {

constexpr Instant kStart = Instant::from_ns(5'000'000'000);
constexpr std::size_t kBytes = 1500;
constexpr std::uint32_t kBlocks = 16;
constexpr std::uint32_t kElements = kBlocks * kMinBlockBytes / 4;

Flow flow_of(ControllerKind kind, std::uint64_t rate = 0) {
  return Flow({.rate_bits_per_second = 0,
               .block_wire_bytes = kBytes,
               .congestion = {.controller = kind, .rate_bits_per_second = rate, .mltcp = {}}});
}

/// Sends all blocks that may leave now. Returns their number.
int send_all(Flow& flow, Instant now) {
  int sent = 0;
  while (flow.may_send(now)) {
    flow.on_sent(now, kBytes, false);
    REQUIRE(++sent < 10'000);
  }
  return sent;
}

/// Node 1 with a rank. Its parent is node 0.
CoreNode leaf(CongestionSettings congestion, std::uint64_t rate_bits_per_second = 0) {
  job::JobConfig config;
  config.job = config.epoch = 1;
  config.self = 1;
  config.world_size = 2;
  config.block_bytes = kMinBlockBytes;
  config.round_bytes = kBlocks * kMinBlockBytes;
  config.peers = {{.node = 0, .rates = {.rate_bits_per_second = rate_bits_per_second}}};
  config.trees = {{.member = true, .parent = hop::PeerIndex(0), .children = {}, .share = {0, 1}}};
  config.local_ranks = {{.arena = nullptr, .rank = 1}};
  config.congestion = congestion;
  return CoreNode(std::move(config));
}

/// The parent's ack of the first `blocks` blocks of the only round.
PacketBuilder ack_of(std::uint32_t blocks, std::uint32_t marked_packets = 0) {
  const PacketBuilder::Round round{
      .id = 0, .geometry = Geometry::of(ElementType::kFloat32, kElements, kMinBlockBytes, 0)};
  return PacketBuilder::ack(wire::PacketType::kPushAck, round)
      .words(0, {(std::uint64_t{1} << blocks) - 1})
      .marked_packets(marked_packets);
}

}  // namespace

TEST_CASE("a fixed rate spaces what a flow sends, after a first burst") {
  Flow flow = flow_of(ControllerKind::kFixed, 12'000'000);  // a block in each millisecond
  const int burst = send_all(flow, kStart);
  CHECK(burst >= 2);
  CHECK(burst <= 3);
  Instant now = kStart;
  for (int n = 0; n < 5; ++n) {
    const Instant due = flow.next_send();
    CHECK(due > now);
    CHECK(due <= now + Duration::ms(1));
    CHECK_FALSE(flow.may_send(due - Duration::ns(1)));
    now = due;
    CHECK(send_all(flow, now) == 1);
  }
}

TEST_CASE("a window of less than a block is one block and a pace") {
  Flow flow = flow_of(ControllerKind::kSwift);
  Instant now = kStart;
  flow.on_rtt(now, Duration::ms(100));
  for (int n = 0; n < 10; ++n) {
    now = now + Duration::seconds(1);
    flow.on_silence(now);
  }
  CHECK(flow.controller().decide(now).window_blocks < 0.1);
  CHECK(flow.window() == 1);
  CHECK(send_all(flow, now) == 1);
  flow.on_forgotten(1);
  // The window lets one block leave in more than 1 s. The flow sends at least one in a second.
  CHECK_FALSE(flow.may_send(now + Duration::ms(900)));
  CHECK(flow.next_send() > now + Duration::ms(900));
  CHECK(flow.next_send() <= now + Duration::ms(1000));
  flow.on_probe();
  CHECK(flow.may_send(now));
  CHECK(flow.next_send() <= now);
}

TEST_CASE("a flow that has nearly stopped learns anew how long its path is") {
  Flow flow = flow_of(ControllerKind::kSwift);
  Instant now = kStart;
  const auto exchange = [&](Duration rtt) {
    now = std::max(now, flow.next_send()) + rtt;
    REQUIRE(flow.may_send(now));
    flow.on_sent(now, kBytes, false);
    flow.on_forward_delay(now, static_cast<std::uint32_t>(rtt.count_ns() / 1000));
    flow.on_rtt(now, rtt);
    flow.on_acked(now, 1);
  };
  exchange(Duration::us(200));
  // The path is longer from now on. At first that looks like a queue.
  const Instant longer_from = now;
  exchange(Duration::ms(12));
  CHECK(flow.window() < 16);
  int sent = 1;
  while (flow.min_rtt() < Duration::ms(12) && ++sent < 1000) exchange(Duration::ms(12));
  CHECK(now - longer_from < Duration::ms(1500));
  const Instant learned = now;
  for (int n = 0; n < 100; ++n) exchange(Duration::ms(12));
  CHECK(now - learned < Duration::seconds(3));
  CHECK(flow.min_rtt() == Duration::ms(12));
}

TEST_CASE("a flow whose rate is configured never forgets how short its path was") {
  Flow flow(
      {.rate_bits_per_second = 0,
       .block_wire_bytes = 9000,
       .congestion = {
           .controller = ControllerKind::kFixed, .rate_bits_per_second = 200'000, .mltcp = {}}});
  flow.on_rtt(kStart, Duration::ms(1));
  flow.on_rtt(kStart + hop::kMinRttLifetime + Duration::seconds(1), Duration::ms(50));
  CHECK(flow.min_rtt() == Duration::ms(1));
}

TEST_CASE("probes of an outage leave no debt to a slow pace") {
  Flow flow = flow_of(ControllerKind::kSwift);
  Instant now = kStart;
  flow.on_rtt(now, Duration::ms(1));
  for (int n = 0; n < 750; ++n) {
    now = now + Duration::ms(40);
    flow.on_silence(now);
    flow.on_probe();
    flow.on_sent(now, 1500, true);
    flow.on_forgotten(1);
  }
  CHECK(flow.next_send() <= now + Duration::seconds(1));
}

TEST_CASE("a wait becomes shorter when the pace becomes faster") {
  hop::Pacer pacer(0, 0);
  pacer.set_rate(kStart, 8'000, 0);
  pacer.on_sent(kStart, 1000);
  CHECK(pacer.next_send() == kStart + Duration::seconds(1));
  pacer.set_rate(kStart, 80'000, 0);
  CHECK(pacer.next_send() == kStart + Duration::ms(100));
  pacer.set_rate(kStart, 0, 0);
  CHECK(pacer.next_send() <= kStart);
  CHECK(pacer.may_send(kStart));
}

TEST_CASE("a mark and a loss reach the controller, and its window the flow") {
  Flow flow = flow_of(ControllerKind::kReno);
  CHECK(flow.window() == 10);
  CHECK(send_all(flow, kStart) == 10);
  flow.on_rtt(kStart + Duration::ms(1), Duration::ms(1));
  flow.on_acked(kStart + Duration::ms(1), 10);
  CHECK(flow.window() == 20);
  flow.on_acked(kStart + Duration::ms(2), 0, true);
  CHECK(flow.window() == 10);
  CHECK(flow.controller().stats().reason == Reason::kMark);
  send_all(flow, kStart + Duration::ms(4));
  flow.on_lost(kStart + Duration::ms(4), 1, kStart + Duration::ms(4));
  CHECK(flow.window() == 5);
  flow.on_silence(kStart + Duration::ms(8));
  CHECK(flow.window() == 1);
}

TEST_CASE("an outage costs a threshold once, although its losses are found after it") {
  CoreNode node = leaf({.controller = ControllerKind::kReno, .mltcp = {}});
  const auto& flow = node.job().peers()[0].flow;
  REQUIRE(node.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  REQUIRE(node.drain(kStart).size() == 10);
  Instant now = kStart;
  std::uint32_t probe_us = 0;
  while (flow.controller().stats().reductions == 0) {
    now = now + Duration::ms(1);
    REQUIRE(now < kStart + Duration::seconds(1));
    node.node().tick(now);
    if (!node.drain(now).empty()) probe_us = hop::clock_us(now);
  }
  CHECK(flow.window() == 1);
  REQUIRE(probe_us != 0);
  now = now + Duration::ms(1);
  const std::uint64_t lost_before = flow.counts().suspected_lost;
  node.deliver(0, ack_of(1).echo_us(probe_us).bytes(), now);
  CHECK(flow.counts().suspected_lost > lost_before);
  CHECK(flow.controller().stats().reductions == 1);
}

TEST_CASE("what was sent while nothing waited does not count as all that a path can do") {
  Flow flow = flow_of(ControllerKind::kBbr);
  Instant now = kStart;
  for (int n = 0; n < 8; ++n) {  // all that window and pacing allow
    send_all(flow, now);
    now = now + Duration::ms(10);
    flow.on_rtt(now, Duration::ms(10));
    flow.on_acked(now, flow.in_flight());
  }
  const std::uint32_t found = flow.window();
  REQUIRE(found > 10);
  for (int n = 0; n < 30; ++n) {
    flow.on_sent(now, kBytes, false);
    flow.note_app_limited();
    now = now + Duration::ms(10);
    flow.on_rtt(now, Duration::ms(10));
    flow.on_acked(now, 1);
  }
  CHECK(flow.window() == found);
}

TEST_CASE("a job that has little to send is no slow path") {
  CoreNode node = leaf({.controller = ControllerKind::kBbr, .mltcp = {}});
  Instant now = kStart;
  const auto ack_round = [&](std::uint32_t round, std::uint32_t elements, std::uint64_t blocks) {
    const std::uint32_t sent_us = hop::clock_us(now);
    now = now + Duration::ms(10);
    const PacketBuilder::Round of{
        .id = round, .geometry = Geometry::of(ElementType::kFloat32, elements, kMinBlockBytes, 0)};
    const auto ack = PacketBuilder::ack(wire::PacketType::kPushAck, of)
                         .words(0, {(std::uint64_t{1} << blocks) - 1})
                         .echo_us(sent_us);
    node.deliver(0, ack.bytes(), now);
  };
  REQUIRE(node.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  REQUIRE(node.drain(now).size() == 10);
  ack_round(0, kElements, 10);
  const std::uint32_t window = node.job().peers()[0].flow.window();
  REQUIRE(window > 20);
  node.drain(now);
  // These are more rounds than BBR remembers, of one block each.
  for (std::uint32_t round = 1; round < kRoundSlots; ++round) {
    REQUIRE(node.submit(0, round, kMinBlockBytes / 4) == job::SubmitResult::kAccepted);
    node.drain(now);
    ack_round(round, kMinBlockBytes / 4, 1);
  }
  CHECK(node.job().peers()[0].flow.window() == window);
}

TEST_CASE("an ack that tells of congestion tells the controller, acked blocks or not") {
  for (const std::uint32_t acked : {8U, 0U}) {
    CoreNode node = leaf({.controller = ControllerKind::kReno, .mltcp = {}});
    REQUIRE(node.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
    CHECK(node.drain(kStart).size() == 10);
    node.deliver(0, ack_of(acked, 1).bytes(), kStart + Duration::ms(1));
    CHECK(node.job().peers()[0].flow.controller().stats().reason == Reason::kMark);
    CHECK(node.job().peers()[0].flow.window() == 5);
  }
}

TEST_CASE("each mark counts once, whatever becomes of acks, and exactly") {
  CoreNode node = leaf({.controller = ControllerKind::kDctcp, .mltcp = {}});
  const auto& dctcp = dynamic_cast<const Dctcp&>(node.job().peers()[0].flow.controller());
  const auto reductions = [&] { return dctcp.stats().reductions; };
  REQUIRE(node.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  node.drain(kStart);
  const auto hear = [&](const PacketBuilder& ack, int after_us) {
    node.deliver(0, ack.bytes(), kStart + Duration::us(after_us));
  };
  hear(ack_of(4), 1000);     // begins the first observation of 100 us
  hear(ack_of(8, 1), 1050);  // a mark
  hear(ack_of(8, 1), 1060);  // the same mark
  hear(ack_of(10, 1), 1160);
  CHECK(dctcp.alpha() == Approx(15.0 / 16 + 1.0 / 16 / 10));
  CHECK(reductions() == 1);
  node.drain(kStart + Duration::us(1160));
  hear(ack_of(8, 0), 2000);  // an older ack, which came late
  CHECK(reductions() == 1);
  hear(ack_of(10, 2), 3000);  // the same blocks and a new mark
  CHECK(reductions() == 2);
  hear(ack_of(10, 4).round(1), 4000);  // of a round that has ended here
  CHECK(reductions() == 3);
  const double before = dctcp.alpha();
  hear(ack_of(14, 4), 5000);  // four new blocks and three new marks
  CHECK(dctcp.alpha() == Approx(before * 15 / 16 + 3.0 / 4 / 16));
}

TEST_CASE("every packet that came marked is in the next ack's count, used or not") {
  CoreNode node = leaf({});
  const auto told = [&](Instant now) {
    node.node().tick(now);
    std::vector<std::uint32_t> counts;
    for (const Sent& sent : node.drain(now)) {
      if (sent.seen().type == wire::PacketType::kResultAck) {
        counts.push_back(sent.seen().ack.marked_packets);
      }
    }
    REQUIRE_FALSE(counts.empty());
    return counts.back();
  };
  const auto result = [&](std::uint32_t block) {
    const PacketBuilder::Round round{
        .id = 0, .geometry = Geometry::of(ElementType::kFloat32, kElements, kMinBlockBytes, 0)};
    return PacketBuilder::block(wire::PacketType::kResult, round, block).contributors(2);
  };
  REQUIRE(node.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  node.drain(kStart);
  node.deliver(0, result(0).bytes(), kStart, true);
  node.deliver(0, result(1).bytes(), kStart);
  node.deliver(0, result(1).bytes(), kStart, true);  // a duplicate
  CHECK(told(kStart) == 2);
  for (std::uint32_t b = 2; b < kBlocks; ++b) node.deliver(0, result(b).bytes(), kStart, b == 2);
  CHECK(told(kStart) == 3);
  node.deliver(0, result(5).bytes(), kStart, true);  // of a round that has ended
  CHECK(told(kStart) == 4);
  CHECK(node.job().counters().congestion_marks == 4);
}

TEST_CASE("an ack without a mark lets the window grow") {
  CoreNode node = leaf({.controller = ControllerKind::kReno, .mltcp = {}});
  REQUIRE(node.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  node.drain(kStart);
  node.deliver(0, ack_of(8).bytes(), kStart + Duration::ms(1));
  CHECK(node.job().peers()[0].flow.window() == 18);
}

TEST_CASE("MLTCP hears how much of the iteration the peer has, acked or written off") {
  CoreNode node = leaf(
      {.controller = ControllerKind::kReno, .mltcp = MltcpFunction{.slope = 4, .intercept = 0.5}});
  const auto gain = [&] { return node.job().peers()[0].flow.controller().stats().gain; };
  CHECK(gain() == 0.5);
  REQUIRE(node.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  node.drain(kStart);
  node.deliver(0, ack_of(4).bytes(), kStart + Duration::ms(1));
  CHECK(gain() == 0.5 + 4.0 * 4 / kBlocks);
  node.deliver(0, ack_of(4).bytes(), kStart + Duration::ms(1));  // no new blocks
  CHECK(gain() == 0.5 + 4.0 * 4 / kBlocks);
  node.deliver(0, ack_of(8).bytes(), kStart + Duration::ms(2));
  CHECK(gain() == 0.5 + 4.0 * 8 / kBlocks);
}

TEST_CASE("a new round begins the iteration of MLTCP anew") {
  CoreNode node = leaf({.controller = ControllerKind::kReno, .mltcp = MltcpFunction{}});
  REQUIRE(node.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  node.drain(kStart);
  node.deliver(0, ack_of(8).bytes(), kStart + Duration::ms(1));
  CHECK(node.job().peers()[0].flow.controller().stats().gain > 1);
  REQUIRE(node.submit(0, 1, kElements) == job::SubmitResult::kAccepted);
  CHECK(node.job().peers()[0].flow.controller().stats().gain == 0.25);
}

TEST_CASE("a job says what limits each of its flows") {
  using enum job::FlowLimit;
  CoreNode node = leaf({.controller = ControllerKind::kReno, .mltcp = {}});
  CHECK(node.job().limit_of(hop::PeerIndex(0), kStart) == kApplication);
  REQUIRE(node.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  CHECK(node.job().limit_of(hop::PeerIndex(0), kStart) == kOwnLink);
  REQUIRE(node.drain(kStart).size() == 10);
  CHECK(node.job().limit_of(hop::PeerIndex(0), kStart) == kWindow);
  node.deliver(0, ack_of(8).bytes(), kStart + Duration::ms(1));
  REQUIRE(node.drain(kStart + Duration::ms(1)).size() == 6);
  CHECK(node.job().limit_of(hop::PeerIndex(0), kStart + Duration::ms(1)) == kApplication);
  // Nobody answers. After several probes the silent peer is the limit.
  for (int ms = 2; ms < 1000; ++ms) {
    node.node().tick(kStart + Duration::ms(ms));
    node.drain(kStart + Duration::ms(ms));
  }
  CHECK(node.job().limit_of(hop::PeerIndex(0), kStart + Duration::seconds(1)) == kPeer);
}

TEST_CASE("a pace of the controller and the peer's link are limits of their own") {
  using enum job::FlowLimit;
  CoreNode paced =
      leaf({.controller = ControllerKind::kFixed, .rate_bits_per_second = 10'000'000, .mltcp = {}});
  REQUIRE(paced.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  CHECK(paced.drain(kStart).size() < kBlocks);
  CHECK(paced.job().limit_of(hop::PeerIndex(0), kStart) == kPacing);
  CoreNode linked = leaf({}, 1'000'000);
  REQUIRE(linked.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  CHECK(linked.drain(kStart).size() < kBlocks);
  CHECK(linked.job().limit_of(hop::PeerIndex(0), kStart) == kPeerLink);
}
