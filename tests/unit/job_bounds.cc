// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Rounds under bounds on real packets: one root, two leaves, and a network that loses what a test
// says.
#include <functional>
#include <map>

#include "dataplane/core/bucket.h"
#include "tests/support/catch.h"
#include "tests/support/core_node.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

constexpr std::uint32_t kBlocks = 20;
constexpr std::uint32_t kElements = kBlocks * 128;
constexpr std::uint16_t kBucket = 7;
constexpr std::uint16_t kLeaves = 2;

using Loses = std::function<bool(std::uint16_t from, const Sent&)>;
bool nothing(std::uint16_t, const Sent&) {
  return false;
}
bool is_push_of(const Sent& packet, std::initializer_list<std::uint32_t> blocks) {
  const wire::Header h = packet.header();
  return h.type == wire::PacketType::kPush &&
         std::find(blocks.begin(), blocks.end(), h.block) != blocks.end();
}

/// Node 0 is the root without ranks, nodes 1 and 2 are leaves with ranks 0 and 1. Blocks 0 to 9 are
/// an exact tensor, 10 to 19 one that may miss two blocks.
class Star {
 public:
  explicit Star(Compensation compensation, Duration absent_after = {}) {
    for (std::uint16_t n = 0; n <= kLeaves; ++n) {
      core::JobConfig config;
      config.job = config.epoch = 1;
      config.self = n;
      config.world_size = kLeaves;
      config.block_bytes = kMinBlockBytes;
      config.round_bytes = kBlocks * kMinBlockBytes;
      config.compensation = compensation;
      config.close_limits = {
          .strict_rounds = 0, .slack = Duration::ms(30), .absent_after = absent_after};
      core::TreeConfig tree{.member = true, .children = {}, .share = {0, 1}, .flat = true};
      if (n == 0) {
        for (std::uint16_t leaf = 1; leaf <= kLeaves; ++leaf) {
          config.peers.push_back({.node = leaf});
          tree.children.push_back({.peer = static_cast<std::uint16_t>(leaf - 1), .ranks = 1});
        }
      } else {
        config.peers = {{.node = 0}};
        tree.parent = 0;
        config.local_ranks = {{.arena = nullptr, .rank = static_cast<std::uint16_t>(n - 1)}};
      }
      config.trees = {tree};
      core::BucketConfig bucket;
      bucket.geometry =
          core::Geometry::of(ElementType::kFloat32, kElements, kMinBlockBytes, kBucket);
      bucket.tensors = {{0, kElements / 2, 0}, {kElements / 2, kElements / 2, 0.2F}};
      if (n == 0) bucket.roots = {{.tree = 0, .nodes = {1, 2}}};
      bucket.limits = config.close_limits;
      bucket.keeps_residual = n != 0 && compensation == Compensation::kCarry;
      buckets_.push_back(std::make_unique<core::Bucket>(bucket));
      nodes_.push_back(std::make_unique<CoreNode>(std::move(config)));
      REQUIRE(nodes_.back()->job().add_bucket(buckets_.back().get()));
    }
  }

  /// Every element of a leaf's contribution is `value`.
  core::SubmitResult submit(std::uint16_t leaf, std::uint32_t round, float value) {
    for (std::uint32_t e = 0; e < kElements; ++e) {
      *nodes_[leaf]->at(0, round, e) = value;
    }
    return nodes_[leaf]->job().submit(0, round, kElements, ElementType::kFloat32, kBucket);
  }

  /// Lets `time` pass in steps of a millisecond; each packet takes one step.
  void pass(Duration time, const Loses& loses = nothing) {
    const Instant end = now_ + time;
    while (now_ < end) {
      std::vector<std::pair<std::uint16_t, Sent>> flying;
      for (std::uint16_t n = 0; n < nodes_.size(); ++n) {
        nodes_[n]->node().tick(now_);
        for (Sent& sent : nodes_[n]->drain(now_)) {
          if (!loses(n, sent)) flying.emplace_back(n, std::move(sent));
        }
        for (const core::Event& event : nodes_[n]->events()) done_[n] = event;
      }
      now_ = now_ + Duration::ms(1);
      for (const auto& [from, sent] : flying) nodes_[sent.to]->deliver(from, sent.bytes, now_);
    }
  }

  /// A round without loss, from which the root learns its thresholds.
  void learn() {
    REQUIRE(submit(1, 0, 0) == core::SubmitResult::kAccepted);
    REQUIRE(submit(2, 0, 0) == core::SubmitResult::kAccepted);
    pass(Duration::ms(20));
    REQUIRE(done_[1].round == 0);
    REQUIRE(done_[2].kind == core::Event::Kind::kRoundDone);
    done_.clear();
  }

  float result(std::uint16_t leaf, std::uint32_t round, std::uint32_t block) {
    return *nodes_[leaf]->at(0, round, block * 128 + 5);
  }
  bool done(std::uint16_t leaf) const { return done_.contains(leaf); }
  core::Event event(std::uint16_t leaf) { return done_[leaf]; }
  CoreNode& node(std::uint16_t n) { return *nodes_[n]; }
  core::Bucket& bucket(std::uint16_t n) { return *buckets_[n]; }

 private:
  std::vector<std::unique_ptr<core::Bucket>> buckets_;
  std::vector<std::unique_ptr<CoreNode>> nodes_;
  std::map<std::uint16_t, core::Event> done_;
  Instant now_ = Instant::from_ns(1'000'000'000);
};

/// Blocks 12 and 15 of leaf 2 never arrive.
bool loses_two(std::uint16_t from, const Sent& packet) {
  return from == 2 && is_push_of(packet, {12, 15});
}

}  // namespace

TEST_CASE("what is within its bound may be missing: the sum of those that came, rescaled") {
  Star star(Compensation::kRescale);
  star.learn();
  REQUIRE(star.submit(1, 1, 3) == core::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 1, 5) == core::SubmitResult::kAccepted);
  star.pass(Duration::ms(60), loses_two);
  for (std::uint16_t leaf = 1; leaf <= kLeaves; ++leaf) {
    CAPTURE(leaf);
    REQUIRE(star.done(leaf));
    CHECK(star.event(leaf).contributors == 1);
    CHECK(star.event(leaf).partial_blocks == 2);
    for (std::uint32_t b = 0; b < kBlocks; ++b) {
      CAPTURE(b);
      CHECK(star.result(leaf, 1, b) == (b == 12 || b == 15 ? 6 : 8));
    }
  }
  CHECK(star.node(0).job().counters().rounds_closed_early == 1);
  CHECK(star.node(0).job().counters().blocks_missing == 2);
  CHECK(star.node(2).job().counters().blocks_excluded == 2);
  CHECK(star.node(1).job().counters().blocks_excluded == 0);
  CHECK(star.bucket(0).closes(core::CloseReason::kEarly) == 1);
  CHECK(star.bucket(0).missing_blocks(1) == 2);
  CHECK(star.bucket(0).missing_blocks(0) == 0);
  CHECK(star.bucket(2).excluded_blocks(1) == 2);
  CHECK(star.bucket(0).last_round()->missing_blocks == 2);
}

TEST_CASE("zero leaves the sum as it came") {
  Star star(Compensation::kZero);
  star.learn();
  REQUIRE(star.submit(1, 1, 3) == core::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 1, 5) == core::SubmitResult::kAccepted);
  star.pass(Duration::ms(60), loses_two);
  REQUIRE(star.done(1));
  CHECK(star.result(1, 1, 12) == 3);
  CHECK(star.result(2, 1, 12) == 3);
  CHECK(star.result(2, 1, 13) == 8);
}

TEST_CASE("carry adds what did not enter to the next gradient, and to no other") {
  Star star(Compensation::kCarry);
  star.learn();
  REQUIRE(star.submit(1, 1, 3) == core::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 1, 5) == core::SubmitResult::kAccepted);
  star.pass(Duration::ms(60), loses_two);
  REQUIRE(star.done(2));
  CHECK(star.result(1, 1, 12) == 3);
  for (std::uint32_t round = 2; round < 4; ++round) {
    REQUIRE(star.submit(1, round, 10) == core::SubmitResult::kAccepted);
    REQUIRE(star.submit(2, round, 20) == core::SubmitResult::kAccepted);
    star.pass(Duration::ms(60));
    for (std::uint32_t b = 0; b < kBlocks; ++b) {
      CAPTURE(round, b);
      const bool gets_more = round == 2 && (b == 12 || b == 15);
      CHECK(star.result(1, round, b) == (gets_more ? 35 : 30));
    }
  }
  CHECK(star.node(2).job().counters().blocks_carried == 2);
}

TEST_CASE("a contribution that entered is not carried, though its ack was lost") {
  Star star(Compensation::kCarry);
  star.learn();
  REQUIRE(star.submit(1, 1, 3) == core::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 1, 5) == core::SubmitResult::kAccepted);
  // Leaf 2 hears nothing but results until long after the close.
  const auto mutes = [](std::uint16_t from, const Sent& packet) {
    return loses_two(from, packet) ||
           (from == 0 && packet.to == 2 && packet.header().type == wire::PacketType::kPushAck);
  };
  star.pass(Duration::ms(60), mutes);
  CHECK(star.done(1));
  CHECK_FALSE(star.done(2));  // it does not know yet what entered
  star.pass(Duration::ms(100));
  REQUIRE(star.done(2));
  CHECK(star.node(2).job().counters().blocks_excluded == 2);
  REQUIRE(star.submit(1, 2, 0) == core::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 2, 0) == core::SubmitResult::kAccepted);
  star.pass(Duration::ms(60));
  for (std::uint32_t b = 0; b < kBlocks; ++b) {
    CAPTURE(b);
    CHECK(star.result(1, 2, b) == (b == 12 || b == 15 ? 5 : 0));
  }
}

TEST_CASE("a critical block is repaired, however long it takes") {
  Star star(Compensation::kRescale);
  star.learn();
  REQUIRE(star.submit(1, 1, 3) == core::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 1, 5) == core::SubmitResult::kAccepted);
  const auto loses = [](std::uint16_t from, const Sent& packet) {
    return from == 2 && is_push_of(packet, {4});
  };
  star.pass(Duration::ms(500), loses);
  CHECK_FALSE(star.done(1));
  star.pass(Duration::ms(100));
  REQUIRE(star.done(1));
  CHECK(star.event(1).partial_blocks == 0);
  CHECK(star.node(0).job().counters().blocks_missing == 0);
}

TEST_CASE("a block that comes after the close enters nothing") {
  Star star(Compensation::kZero);
  star.learn();
  REQUIRE(star.submit(1, 1, 3) == core::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 1, 5) == core::SubmitResult::kAccepted);
  std::vector<Sent> kept;
  star.pass(Duration::ms(60), [&](std::uint16_t from, const Sent& packet) {
    if (!loses_two(from, packet)) return false;
    kept.push_back(packet);
    return true;
  });
  REQUIRE(star.done(2));
  REQUIRE_FALSE(kept.empty());
  star.node(0).deliver(2, kept[0].bytes, Instant::from_ns(2'000'000'000));
  CHECK(star.result(1, 1, 12) == 3);
  REQUIRE(star.submit(1, 2, 1) == core::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 2, 1) == core::SubmitResult::kAccepted);
  star.pass(Duration::ms(60));
  CHECK(star.result(1, 2, 12) == 2);
}

TEST_CASE(
    "a rank that comes after the round has closed gets the same result, and carries its own") {
  Star star(Compensation::kCarry, Duration::ms(200));
  star.learn();
  REQUIRE(star.submit(1, 1, 3) == core::SubmitResult::kAccepted);
  star.pass(Duration::ms(300));
  REQUIRE(star.done(1));
  CHECK(star.event(1).partial_blocks == kBlocks);
  CHECK(star.node(0).job().counters().rounds_closed_absent == 1);
  REQUIRE(star.submit(2, 1, 5) == core::SubmitResult::kAccepted);
  star.pass(Duration::ms(200));
  REQUIRE(star.done(2));
  for (std::uint32_t b = 0; b < kBlocks; ++b) CHECK(star.result(2, 1, b) == 3);
  REQUIRE(star.submit(1, 2, 10) == core::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 2, 10) == core::SubmitResult::kAccepted);
  star.pass(Duration::ms(60));
  for (std::uint32_t b = 0; b < kBlocks; ++b) CHECK(star.result(1, 2, b) == 25);
}

TEST_CASE("the closing ack is said again until it is heard, though no push comes through") {
  Star star(Compensation::kCarry);
  star.learn();
  REQUIRE(star.submit(1, 1, 3) == core::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 1, 5) == core::SubmitResult::kAccepted);
  star.pass(Duration::ms(60), [](std::uint16_t from, const Sent& packet) {
    return loses_two(from, packet) ||
           (from == 0 && packet.to == 2 && packet.header().type == wire::PacketType::kPushAck);
  });
  CHECK_FALSE(star.done(2));
  star.pass(Duration::ms(100), loses_two);
  CHECK(star.done(2));
}

TEST_CASE("a gradient that is not finite is not carried") {
  Star star(Compensation::kCarry);
  star.learn();
  REQUIRE(star.submit(1, 1, 3) == core::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 1, std::numeric_limits<float>::quiet_NaN()) ==
          core::SubmitResult::kAccepted);
  star.pass(Duration::ms(60), loses_two);
  REQUIRE(star.done(2));
  CHECK(star.node(2).job().counters().carry_dropped == 2);
  REQUIRE(star.submit(1, 2, 10) == core::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 2, 10) == core::SubmitResult::kAccepted);
  star.pass(Duration::ms(60));
  CHECK(star.result(1, 2, 12) == 20);
}

TEST_CASE("a bucket's next round waits until this one is done") {
  Star star(Compensation::kCarry);
  star.learn();
  REQUIRE(star.submit(1, 1, 3) == core::SubmitResult::kAccepted);
  CHECK(star.submit(1, 2, 3) == core::SubmitResult::kBusy);
  REQUIRE(star.submit(2, 1, 5) == core::SubmitResult::kAccepted);
  star.pass(Duration::ms(60));
  CHECK(star.submit(1, 2, 3) == core::SubmitResult::kAccepted);
}
