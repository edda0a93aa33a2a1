// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Exchanges under bounded staleness packet by packet, at node 0 of three. It receives updates from
// node 1, and only word of node 2's rounds. Rank n is on node n, and tree n has its root there.
#include <algorithm>
#include <array>

#include "dataplane/engine/local_plan.h"
#include "dataplane/hop/clock.h"
#include "dataplane/model/staleness.h"
#include "tests/support/catch.h"
#include "tests/support/core_node.h"
#include "tests/support/packet.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

constexpr std::uint16_t kNodes = 3;
constexpr std::uint32_t kBlocks = 3;
constexpr std::uint32_t kElements = kBlocks * kMinBlockBytes / 4;
constexpr std::uint16_t kBucket = 1;

Statement said(std::uint16_t bucket = kBucket) {
  return {.elements = kElements, .bucket = bucket, .operation = Operation::kExchange};
}

api::Plan plan_of(std::uint32_t epoch, std::uint16_t nodes) {
  api::Plan plan{.epoch = epoch, .members = {}, .trees = {}};
  for (std::uint16_t n = 0; n < nodes; ++n) {
    plan.members.push_back({.node = n, .ranks = {n}});
    api::Tree tree{.weight = 1, .root = n, .parent = std::vector<api::NodeId>(nodes, n)};
    tree.parent[n] = api::kNoNode;
    plan.trees.push_back(tree);
  }
  plan.selections = {{.receivers = {{2}, {0}, {}}}};
  plan.selections[0].receivers.resize(nodes);
  return plan;
}

job::JobConfig config() {
  job::JobConfig config;
  config.job = config.epoch = 1;
  config.block_bytes = kMinBlockBytes;
  config.round_bytes = kBlocks * kMinBlockBytes;
  config.staleness_steps = 1;
  config.local_ranks = {{.arena = nullptr, .rank = 0}};
  engine::fill_local_plan(config, plan_of(1, kNodes), 0, {});
  return config;
}

/// The streams at node 0.
std::vector<aggregate::GatheredTree> streams_of(std::uint16_t nodes) {
  std::vector<aggregate::GatheredTree> streams;
  for (std::uint16_t n = 1; n < nodes; ++n)
    streams.push_back({.tree = 0, .sources = {{.hosts = {{n, n}}}}, .is_stream = true});
  return streams;
}

aggregate::BucketConfig bucket() {
  aggregate::BucketConfig bucket;
  bucket.epoch = 1;
  bucket.geometry = Geometry::of(ElementType::kFloat32, kElements, kMinBlockBytes, kBucket);
  bucket.tensors = {{0, kElements, 0}};
  bucket.gathered = streams_of(kNodes);
  bucket.has_inbox = true;
  return bucket;
}

struct Stage {
  explicit Stage(bool knows_bucket = true) {
    if (knows_bucket) REQUIRE(node.job().add_bucket(&of));
  }

  static PacketBuilder::Round round(std::uint32_t id) {
    return {.id = id, .geometry = Geometry::of(said(), kMinBlockBytes, kNodes)};
  }
  job::SubmitResult submit(std::uint32_t id) {
    for (std::uint32_t e = 0; e < kElements; ++e) *node.at(0, id, e) = 8;
    return node.job().submit(0, id, said());
  }
  static PacketBuilder push(std::uint32_t id, std::uint32_t block) {
    std::vector<std::byte> twos(kMinBlockBytes);
    for (std::size_t at = 0; at < twos.size(); at += sizeof(float)) {
      const float two = 2;
      std::memcpy(twos.data() + at, &two, sizeof two);
    }
    return PacketBuilder::block(wire::PacketType::kPush, round(id), block).sender(1).payload(twos);
  }
  static PacketBuilder word(std::uint32_t id) {
    return PacketBuilder::block(wire::PacketType::kPush, round(id), 0).sender(2).empty();
  }
  void deliver(const PacketBuilder& packet) { node.deliver(packet.sender(), packet.bytes(), now); }
  void deliver_update(std::uint32_t id) {
    for (std::uint32_t b = 0; b < kBlocks; ++b) deliver(push(id, b));
  }
  /// The two other nodes ack all blocks that this node sends.
  void others_ack(std::uint32_t id) {
    (void)node.drain(now);
    for (const auto to : std::to_array<std::uint8_t>({1, 2})) {
      deliver(PacketBuilder::ack(wire::PacketType::kPushAck, round(id))
                  .sender(to)
                  .tree(to)
                  .flags(wire::kFlagComplete));
    }
    (void)node.drain(now);
  }
  bool is_done() {
    const std::vector<job::Event> events = node.events();
    return std::any_of(events.begin(), events.end(), [](const job::Event& event) {
      return event.kind == job::Event::Kind::kRoundDone;
    });
  }
  const hop::Counters& counters() const { return node.job().counters(); }

  aggregate::Bucket of{bucket()};
  CoreNode node{config()};
  Instant now = Instant::from_ns(1'000'000'000);
};

}  // namespace

TEST_CASE("an update goes to its receiver, and word of it to the others") {
  Stage stage;
  REQUIRE(stage.submit(0) == job::SubmitResult::kAccepted);
  std::uint32_t blocks = 0;
  std::uint32_t words = 0;
  for (const Sent& packet : stage.node.drain(stage.now)) {
    if (packet.seen().type != wire::PacketType::kPush) continue;
    ++(packet.to == 2 ? blocks : words);
    CHECK(packet.seen().payload.size() == (packet.to == 2 ? kMinBlockBytes : 0));
  }
  CHECK(blocks == kBlocks);
  CHECK(words == 1);
}

TEST_CASE("updates that come early and late are in the next result") {
  Stage stage;
  stage.deliver_update(0);
  stage.deliver_update(1);
  REQUIRE(stage.submit(0) == job::SubmitResult::kAccepted);
  CHECK_FALSE(stage.is_done());
  CHECK(stage.node.element(0, 0, 0) == 8);  // the others still need the update
  stage.others_ack(0);
  REQUIRE(stage.is_done());
  // The result is the mean of 8, 2 and 2, times three ranks.
  for (std::uint32_t e = 0; e < kElements; ++e) REQUIRE(stage.node.element(0, 0, e) == 12);
  CHECK(stage.counters().updates_received == 2);
  CHECK(stage.counters().updates_late == 0);
  stage.deliver(Stage::word(0));
  REQUIRE(stage.submit(1) == job::SubmitResult::kAccepted);
  stage.others_ack(1);
  REQUIRE(stage.is_done());
  CHECK(stage.node.element(0, 1, 0) == 24);  // no update is in two results
}

TEST_CASE("a result waits for a rank that is more than the bound behind") {
  Stage stage;
  REQUIRE(stage.submit(0) == job::SubmitResult::kAccepted);
  stage.others_ack(0);
  REQUIRE(stage.is_done());
  CHECK(stage.node.element(0, 0, 0) == 24);
  REQUIRE(stage.submit(1) == job::SubmitResult::kAccepted);
  stage.others_ack(1);
  CHECK_FALSE(stage.is_done());
  const job::Waiting waiting = stage.node.job().waiting();
  CHECK(waiting.round == 1);
  REQUIRE(waiting.silent_count == 2);
  stage.deliver(Stage::word(0));
  CHECK_FALSE(stage.is_done());
  CHECK(stage.node.job().waiting().silent_nodes[0] == 1);
  stage.deliver_update(0);
  (void)stage.node.drain(stage.now);
  REQUIRE(stage.is_done());
  CHECK(stage.node.element(0, 1, 0) == 15);
  CHECK(stage.counters().updates_late == 1);
}

TEST_CASE("who is selected sends an update, and who is not sends none") {
  Stage stage;
  stage.deliver(Stage::push(0, 0).empty());
  stage.deliver(Stage::push(0, 1).sender(2));
  CHECK(stage.node.drops(hop::Drop::kBadContributors) == 2);
  stage.deliver(Stage::word(0).index(1));
  CHECK(stage.node.drops(hop::Drop::kBadGeometry) == 1);
  CHECK(stage.counters().blocks_received == 0);
}

TEST_CASE("nobody sends what is further ahead than who waits for this node may be") {
  Stage stage;
  stage.deliver_update(0);
  stage.deliver_update(1);
  CHECK(stage.counters().updates_received == 2);
  stage.deliver_update(2);
  CHECK(stage.node.drops(hop::Drop::kFutureRound) == kBlocks);
  REQUIRE(stage.submit(0) == job::SubmitResult::kAccepted);
  stage.deliver_update(2);
  CHECK(stage.counters().updates_received == 3);
}

TEST_CASE("who sends what this node cannot take yet hears that the path is whole") {
  Stage stage;
  stage.deliver_update(0);
  stage.deliver_update(1);
  (void)stage.node.drain(stage.now);
  stage.deliver_update(2);
  const std::vector<Sent> sent = stage.node.drain(stage.now);
  REQUIRE(sent.size() == 1);
  const SeenPacket answer = sent[0].seen();
  CHECK(answer.type == wire::PacketType::kPushAck);
  CHECK(sent[0].to == 1);
  CHECK(answer.round == 2);
  CHECK((answer.flags & (wire::kFlagComplete | wire::kFlagClosed | wire::kFlagEnded)) == 0);
}

TEST_CASE("a repeated update counts once, and its sender hears that it has come") {
  Stage stage;
  stage.deliver_update(0);
  (void)stage.node.drain(stage.now);
  stage.deliver_update(0);
  CHECK(stage.node.drops(hop::Drop::kDuplicate) == kBlocks);
  const std::vector<Sent> sent = stage.node.drain(stage.now);
  REQUIRE_FALSE(sent.empty());
  CHECK(sent[0].seen().type == wire::PacketType::kPushAck);
  CHECK((sent[0].seen().flags & wire::kFlagComplete) != 0);
  REQUIRE(stage.submit(0) == job::SubmitResult::kAccepted);
  stage.others_ack(0);
  CHECK(stage.node.element(0, 0, 0) == 15);
}

TEST_CASE("nothing is taken of a bucket that the node does not know yet") {
  Stage stage(false);
  stage.deliver_update(0);
  CHECK(stage.node.drops(hop::Drop::kFutureRound) == kBlocks);
  CHECK(stage.submit(0) == job::SubmitResult::kBusy);
  REQUIRE(stage.node.job().add_bucket(&stage.of));
  CHECK(stage.submit(0) == job::SubmitResult::kAccepted);
}

TEST_CASE("ranks that say different things of a round are told so, whoever comes first") {
  Stage stage;
  stage.deliver_update(0);
  CHECK(stage.node.job().submit(0, 0, {.elements = 7}) == job::SubmitResult::kMismatch);
  Stage other;
  REQUIRE(other.node.job().submit(0, 0, {.elements = 7}) == job::SubmitResult::kAccepted);
  other.deliver(Stage::push(0, 1));
  CHECK(other.node.drops(hop::Drop::kMismatch) == 1);
}

TEST_CASE("no exchange is complete at its sender while this node lacks an exact round before it") {
  Stage stage;
  REQUIRE(stage.node.job().submit(0, 0, {.elements = 7}) == job::SubmitResult::kAccepted);
  (void)stage.node.drain(stage.now);
  stage.deliver_update(1);
  CHECK(stage.counters().blocks_received == kBlocks - 1);
  CHECK(stage.node.drops(hop::Drop::kFutureRound) == 1);
  // The node's own exchange waits, too.
  REQUIRE(stage.submit(1) == job::SubmitResult::kAccepted);
  for (const Sent& packet : stage.node.drain(stage.now)) {
    if (packet.seen().type == wire::PacketType::kPush) CHECK(packet.seen().round == 0);
  }
}

TEST_CASE("a first block that its receiver refuses goes again, and is no loss of the path") {
  Stage stage;
  REQUIRE(stage.submit(0) == job::SubmitResult::kAccepted);
  (void)stage.node.drain(stage.now);
  stage.now = stage.now + Duration::ms(10);
  const auto acked = [&](std::uint64_t blocks) {
    stage.deliver(PacketBuilder::ack(wire::PacketType::kPushAck, Stage::round(0))
                      .sender(2)
                      .tree(2)
                      .words(0, {blocks})
                      .echo_us(hop::clock_us(stage.now)));
    std::size_t pushes = 0;
    for (const Sent& packet : stage.node.drain(stage.now))
      pushes += packet.to == 2 && packet.seen().type == wire::PacketType::kPush ? 1 : 0;
    return pushes;
  };
  SECTION("alone") {
    CHECK(acked(6) == 1);
    CHECK(stage.counters().blocks_suspected_lost == 0);
  }
  SECTION("but another one is lost") {
    CHECK(acked(5) == 1);
    CHECK(stage.counters().blocks_suspected_lost == 1);
  }
}

TEST_CASE("a bucket that others know otherwise ends the job") {
  Stage stage;
  Statement longer = said();
  longer.elements = kElements - 1;
  CHECK(stage.node.job().submit(0, 0, longer) == job::SubmitResult::kMismatch);
  Stage other;
  other.deliver(Stage::push(0, 0).round_elements(kElements - 1));
  CHECK(other.node.drops(hop::Drop::kMismatch) == 1);
}

TEST_CASE("a round that nobody can have come to moves nothing") {
  Stage stage;
  stage.deliver(Stage::push(1U << 30, 0));
  CHECK(stage.node.drops(hop::Drop::kFutureRound) == 1);
  stage.deliver(Stage::push(0, 0));
  stage.deliver(Stage::push(1, 0));  // the bucket has a round that is not complete
  CHECK(stage.node.drops(hop::Drop::kFutureRound) == 2);
}

TEST_CASE("a round is as far ahead as the bound lets a rank come in the buckets of this node") {
  constexpr std::uint32_t kMost = stream_lead_rounds(1, 1);
  CHECK(kMost == 3 + kRoundSlots);
  Stage beyond;
  beyond.deliver(Stage::push(kMost + 1, 0));
  CHECK(beyond.node.drops(hop::Drop::kFutureRound) == 1);
  Stage stage;
  stage.deliver(Stage::push(kMost, 0));
  CHECK(stage.node.drops(hop::Drop::kFutureRound) == 0);
}

TEST_CASE("an exchange that waits for acks names who owes them") {
  Stage stage;
  stage.deliver_update(0);
  stage.deliver(Stage::word(0));
  REQUIRE(stage.submit(0) == job::SubmitResult::kAccepted);
  (void)stage.node.drain(stage.now);
  stage.deliver(PacketBuilder::ack(wire::PacketType::kPushAck, Stage::round(0))
                    .sender(1)
                    .tree(1)
                    .flags(wire::kFlagComplete));
  const job::Waiting waiting = stage.node.job().waiting();
  CHECK(waiting.any);
  CHECK(waiting.round == 0);
  REQUIRE(waiting.silent_count == 1);
  CHECK(waiting.silent_nodes[0] == 2);
  stage.others_ack(0);
  REQUIRE(stage.is_done());
  CHECK_FALSE(stage.node.job().waiting().any);
}

TEST_CASE("a rank that joins is heard once the rank here has submitted all rounds before") {
  Stage stage;
  job::Job& job = stage.node.job();
  const job::PlanConfig config = engine::local_plan(plan_of(2, kNodes + 1), 0, {}, false);
  auto plan = std::make_unique<job::Plan>(config, job.config());
  plan->add_bucket({.bucket = &stage.of,
                    .gathers = stage.of.make_gathers(config.epoch, streams_of(kNodes + 1)),
                    .residual = nullptr});
  const std::uint32_t activation = stage.node.node().prepare(&job, plan).horizon;
  REQUIRE(activation > 1);
  REQUIRE(job.commit(2, activation));
  PacketBuilder::Round first = Stage::round(activation);
  first.epoch = 2;
  const auto comes = [&] {
    const std::uint64_t before = stage.counters().blocks_received;
    stage.deliver(PacketBuilder::block(wire::PacketType::kPush, first, 0).sender(3).empty());
    return stage.counters().blocks_received == before + 1;
  };
  for (std::uint32_t id = 0; id + 1 < activation; ++id) {
    CHECK_FALSE(comes());
    REQUIRE(stage.submit(id) == job::SubmitResult::kAccepted);
    stage.deliver_update(id);
    stage.deliver(Stage::word(id));
    stage.others_ack(id);
    REQUIRE(stage.is_done());
  }
  CHECK_FALSE(comes());
  REQUIRE(stage.submit(activation - 1) == job::SubmitResult::kAccepted);
  CHECK(comes());
}

TEST_CASE("a bucket without bounds of its own is gathered in step") {
  Stage stage;
  REQUIRE(stage.node.job().submit(0, 0, said(0)) == job::SubmitResult::kAccepted);
  std::uint32_t pushes = 0;
  for (const Sent& packet : stage.node.drain(stage.now))
    pushes += packet.seen().type == wire::PacketType::kPush ? 1 : 0;
  CHECK(pushes == kBlocks);
}
