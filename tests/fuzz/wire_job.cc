// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// A whole job under arbitrary sequences of packets, submissions and pauses. The input is a list of
// choices: most packets are valid, but one or two of their fields are changed. There are no tags,
// so the node accepts packets of all senders and every path can be reached.
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/base/assert.h"
#include "dataplane/wire/sounding.h"
#include "tests/fuzz/choices.h"
#include "tests/support/core_node.h"
#include "tests/support/packet.h"

using namespace gradplane;
using gradplane::testing::Choices;
using gradplane::testing::CoreNode;
using gradplane::testing::PacketBuilder;

namespace {

constexpr std::size_t kMaxSteps = 512;
constexpr std::uint16_t kBucket = 7;
constexpr std::uint32_t kElements = 1152;
constexpr std::uint16_t kRanks = 5;
constexpr std::uint32_t kShardedElements = 128 * kRanks;
constexpr std::uint32_t kFirstRound = 0xffff'fff8;  // numbers wrap around within a few rounds

/// Leaf, relay and root of three trees at once, or a node without ranks. The input decides.
job::JobConfig config_of(Choices& in) {
  job::JobConfig c;
  c.job = c.epoch = 1;
  c.self = 1;
  c.world_size = kRanks;
  c.first_round = kFirstRound;
  c.block_bytes = kMinBlockBytes;
  c.round_bytes = 9 * kMinBlockBytes;
  c.peers = {{.node = 0}, {.node = 2}, {.node = 3}};
  c.stall_after = Duration::seconds(2);
  const aggregate::TreeConfig relay{
      .member = true,
      .parent = hop::PeerIndex(0),
      .children = {{hop::PeerIndex(1), 1, {2}}, {hop::PeerIndex(2), 2, {3}}},
      .share = {0, 2}};
  const aggregate::TreeConfig root{.member = true,
                                   .parent = hop::kNoPeer,
                                   .children = {{hop::PeerIndex(1), 4, {0, 2, 3}}},
                                   .share = {2, 1}};
  const aggregate::TreeConfig leaf{
      .member = true, .parent = hop::PeerIndex(2), .children = {}, .share = {3, 2}};
  const std::uint32_t shape = in.below(4);
  c.trees = shape == 0   ? std::vector<aggregate::TreeConfig>{relay, root, leaf}
            : shape == 1 ? std::vector<aggregate::TreeConfig>{relay, root}
                         : std::vector<aggregate::TreeConfig>{relay};
  if (shape == 3) c.trees[0].share = {0, 1};
  if (shape != 2) c.local_ranks.push_back({.arena = nullptr, .rank = 1});
  if (shape == 3) c.local_ranks.push_back({.arena = nullptr, .rank = 0});
  const auto own = static_cast<std::uint16_t>(c.local_ranks.size());
  c.routes = {{.from = 3, .nodes = {1, 2}}, {.from = 2, .nodes = {3, 1}}};
  c.hosts = {{0, static_cast<std::uint16_t>(2 - own)}, {1, own}, {2, 1}, {3, 2}};
  return c;
}

/// The bucket of most rounds, with the trees that are gathered here.
aggregate::BucketConfig bucket_of(const job::JobConfig& job) {
  aggregate::BucketConfig c;
  c.epoch = job.epoch;
  c.geometry = Geometry::of(ElementType::kFloat32, kElements, kMinBlockBytes, kBucket);
  c.tensors = {{0, 200, 0}, {200, 900, 0.4F}, {1100, 50, 0.5F}};
  for (std::size_t t = 0; t < job.trees.size(); ++t) {
    if (job.trees[t].children.empty()) continue;
    aggregate::GatheredTree tree{
        .tree = static_cast<std::uint8_t>(t), .sources = {}, .is_root = job.trees[t].is_root()};
    for (const aggregate::ChildConfig& child : job.trees[t].children) {
      aggregate::GatherSource& source = tree.sources.emplace_back();
      for (const std::uint16_t host : child.hosts) {
        source.hosts.push_back({.node = job.hosts[host].node, .host = host});
        source.relays |= job.hosts[host].node != job.peers[child.peer.index()].node;
      }
    }
    c.gathered.push_back(std::move(tree));
  }
  c.limits = {.floor = 0.1F, .strict_rounds = 1, .absent_after = Duration::ms(20)};
  c.keeps_residual = !job.local_ranks.empty();
  return c;
}

class Fuzzer {
 public:
  explicit Fuzzer(Choices in)
      : in_(in),
        node_(config_of(in_)),
        bucket_(bucket_of(node_.job().config())),
        knows_bounds_(in_.below(4) != 0) {
    if (knows_bounds_) GP_ASSERT(node_.job().add_bucket(&bucket_));
  }

  void run() {
    for (std::size_t step = 0; step < kMaxSteps && !in_.empty(); ++step) {
      switch (in_.below(8)) {
        case 0:
          submit();
          break;
        case 1:
          now_ = now_ + Duration::us(in_.below(4) == 0 ? in_.number() : 50 * in_.byte());
          node_.node().tick(now_);
          break;
        case 2:
          echo();
          break;
        case 3:
          sound();
          break;
        default:
          deliver();
      }
      settle();
    }
  }

 private:
  std::uint32_t some_round() { return kFirstRound + in_.below(in_.below(4) == 0 ? 40 : 3); }

  void submit() {
    const std::size_t ranks = node_.job().config().local_ranks.size();
    if (ranks == 0) return;
    const auto type = kElementTypes[in_.below(kElementTypes.size())];
    const std::uint32_t elements = in_.below(8) == 0 ? in_.number() : kElements;
    const std::uint32_t bucket = in_.below(8) == 0 ? in_.number() : some_bucket();
    const std::uint32_t round = in_.below(8) == 0 ? in_.number() : some_round();
    const auto rank = in_.below(static_cast<std::uint32_t>(ranks));
    if (in_.below(8) != 0 && operation_of(round) != Operation::kAllReduce) {
      (void)node_.job().submit(rank, round, statement_of(round, elements, 0));
      return;
    }
    (void)node_.job().submit(rank, round, elements,
                             in_.below(8) != 0 ? ElementType::kFloat32 : type, bucket);
  }

  /// The operation of a round in most of its packets and submissions.
  static Operation operation_of(std::uint32_t round) {
    return round % 3 == 0 ? static_cast<Operation>(2 + round / 3 % 3) : Operation::kAllReduce;
  }
  static Statement statement_of(std::uint32_t round, std::uint32_t elements, std::uint16_t bucket) {
    const Operation operation = operation_of(round);
    if (operation == Operation::kAllReduce) return {.elements = elements, .bucket = bucket};
    const bool has_source = operation == Operation::kBroadcast;
    const bool reduces = operation == Operation::kReduceScatter;
    return {.elements = has_source ? elements : kShardedElements,
            .operation = operation,
            .source = static_cast<std::uint16_t>(has_source ? round % kRanks : 0),
            .reduction = reduces ? kReductions[round / 9 % kReductions.size()] : Reduction::kSum};
  }

  std::uint16_t some_bucket() { return in_.below(4) != 0 ? kBucket : 0; }

  PacketBuilder valid() {
    const std::uint32_t elements = in_.below(16) != 0 ? kElements : 1 + in_.word() % kElements;
    const std::uint16_t bucket = some_bucket();
    const std::uint32_t id = some_round();
    const PacketBuilder::Round round{
        .job = 1,
        .epoch = 1,
        .id = id,
        .geometry = Geometry::of(statement_of(id, elements, bucket), kMinBlockBytes, kRanks)};
    const bool sums = all_contribute(round.geometry.operation);
    const std::uint32_t block = in_.below(9);
    const auto tree = static_cast<std::uint8_t>(in_.below(in_.below(4) == 0 ? 3 : 1));
    switch (in_.below(6)) {
      case 0:
      case 4:
      case 5: {
        const auto from = static_cast<std::uint16_t>(2 + in_.below(2));
        const std::uint16_t ranks = tree == 1 ? 4 : static_cast<std::uint16_t>(from - 1);
        PacketBuilder push = PacketBuilder::block(wire::PacketType::kPush, round, block)
                                 .sender(from)
                                 .tree(tree)
                                 .flags(in_.below(4) == 0 ? wire::kFlagLast | wire::kFlagBounded
                                                          : wire::kFlagBounded)
                                 .contributors(sums ? ranks : std::uint16_t{1});
        if (!sums && in_.below(2) == 0) push.empty();
        return with_parity(std::move(push), wire::PacketType::kPushParity);
      }
      case 1:
        return with_parity(PacketBuilder::block(wire::PacketType::kResult, round, block)
                               .sender(tree == 2 ? 2 : 0)
                               .tree(tree)
                               .flags(sums ? wire::kFlagPartial : std::uint8_t{0})
                               .contributors(static_cast<std::uint16_t>(sums ? in_.below(5) : 1)),
                           wire::PacketType::kResultParity);
      case 2:
        return ack(wire::PacketType::kPushAck, round).sender(tree == 2 ? 2 : 0).tree(tree);
      default:
        return ack(wire::PacketType::kResultAck, round)
            .sender(static_cast<std::uint16_t>(2 + in_.below(2)))
            .tree(tree);
    }
  }

  /// Adds parity fields to a block: most blocks announce parity, and some packets are parity.
  PacketBuilder with_parity(PacketBuilder block, wire::PacketType type) {
    if (in_.below(4) == 0) return block;
    const auto rows = static_cast<std::uint8_t>(in_.below(16) == 0 ? in_.byte() : 6);
    block.parity_rows(rows);
    if (in_.below(4) != 0) return block;
    return block.type(type)
        .flags(in_.below(2) == 0 ? wire::kFlagBounded : std::uint8_t{0})
        .index(static_cast<std::uint16_t>(in_.below(8)))
        .contributors(1)
        .payload(std::vector<std::byte>(in_.below(8) == 0 ? in_.byte() : kMinBlockBytes));
  }

  PacketBuilder ack(wire::PacketType type, const PacketBuilder::Round& round) {
    std::vector<std::uint64_t> words(in_.below(3));
    for (std::uint64_t& w : words) w = in_.byte();
    return PacketBuilder::ack(type, round)
        .words(in_.below(8) == 0 ? in_.below(120) : 0, words)
        .echo_us(in_.below(3) == 0 ? in_.number() : hop::clock_us(now_))
        .ack_delay_us(in_.below(4) == 0 ? in_.number() : 0)
        .flags(in_.below(4) != 0   ? std::uint8_t{0}
               : in_.below(2) == 0 ? wire::kFlagComplete
                                   : wire::kFlagClosed);
  }

  void deliver() {
    via_ = -1;
    PacketBuilder packet = valid().number(++number_);
    for (std::uint32_t n = in_.below(4); n > 1; --n) testing::change(packet, in_, number_, via_);
    node_.deliver(via_ < 0 ? packet.sender() : static_cast<std::uint16_t>(via_), packet.bytes(),
                  now_);
  }

  /// Delivers a packet of a sounding, or an answer. Some of its fields are wrong.
  void sound() {
    const bool is_answer = in_.below(2) == 0;
    const std::size_t block_bytes = in_.below(4) == 0 ? in_.byte() : kMinBlockBytes;
    std::vector<std::byte> packet(wire::sounding_bytes(block_bytes));
    const wire::Envelope envelope{
        .type = wire::PacketType::kSounding,
        .flags = static_cast<std::uint8_t>(is_answer ? wire::kFlagAnswer : 0),
        .job = 1,
        .sender = static_cast<std::uint16_t>(in_.below(5)),
        .timestamp_us = in_.below(4) == 0 ? in_.number() : hop::clock_us(now_)};
    const wire::Sounding sounding{
        .epoch = static_cast<std::uint16_t>(in_.below(8) == 0 ? in_.number() : 1),
        .round_trip = static_cast<std::uint16_t>(in_.number()),
        .number = in_.below(4) == 0 ? in_.number() : in_.below(3),
        .echo_us = is_answer || in_.below(8) == 0 ? in_.number() : 0,
        .is_answer = is_answer};
    packet.resize(wire::write_sounding(packet, envelope, sounding));
    wire::number_unsealed(packet, ++number_);
    node_.deliver(envelope.sender, packet, now_);
  }

  /// Delivers answers to the packets that the node has sent, as a correct neighbour might.
  void echo() {
    for (const testing::Sent& sent : sent_) {
      const testing::SeenPacket h = sent.seen();
      const bool is_push = h.type == wire::PacketType::kPush;
      if (!is_push && h.type != wire::PacketType::kResult) continue;
      const auto geometry = Geometry::of({.type = h.element_type,
                                          .elements = h.round_elements,
                                          .bucket = h.bucket,
                                          .operation = h.operation,
                                          .source = h.source,
                                          .reduction = h.reduction},
                                         kMinBlockBytes, kRanks);
      const std::uint16_t whole = all_contribute(h.operation) ? kRanks : 1;
      const PacketBuilder::Round round{.job = 1, .epoch = 1, .id = h.round, .geometry = geometry};
      const auto answer =
          is_push
              ? PacketBuilder::block(wire::PacketType::kResult, round, h.block).contributors(whole)
              : PacketBuilder::ack(wire::PacketType::kResultAck, round)
                    .flags(wire::kFlagComplete)
                    .echo_us(h.timestamp_us);
      node_.deliver(sent.to,
                    PacketBuilder(answer).sender(sent.to).tree(h.tree).number(++number_).bytes(),
                    now_);
      (void)node_.events();
    }
    sent_.clear();
  }

  /// Does what the engine does after every burst.
  void settle() {
    for (testing::Sent& packet : node_.drain(now_)) sent_.push_back(std::move(packet));
    (void)node_.events();
    (void)node_.job().waiting();
    (void)node_.node().next_deadline(now_);
    for (const hop::Peer& peer : node_.job().peers()) GP_ASSERT(peer.flow.window() >= 2);
  }

  Choices in_;
  CoreNode node_;
  aggregate::Bucket bucket_;  // the job points to it only while it handles packets and submissions
  bool knows_bounds_;
  std::uint64_t number_ = 0;  // of the last packet of any sender
  int via_ = -1;  // the node from which the current packet comes, if that is not its sender
  Instant now_ = Instant::from_ns(((std::int64_t{1} << 32) - 5000) * 1000);
  std::vector<testing::Sent> sent_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Fuzzer(Choices({data, size})).run();
  return 0;
}
