// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/support/table_node.h"

#include <algorithm>

#include "dataplane/base/assert.h"

namespace gradplane::testing {
namespace {

/// The number of turns of finish() after which the parent sends results without a push.
constexpr int kPatience = 100;

job::JobConfig table_config() {
  job::JobConfig config;
  config.job = 1;
  config.epoch = 1;
  config.self = TableNode::kSelf;
  config.world_size = TableNode::kWorld;
  config.first_round = TableNode::kRound - 1;
  config.authenticate = true;
  config.key = TableNode::kKey;
  config.block_bytes = kMinBlockBytes;
  config.round_bytes = 16 * kMinBlockBytes;
  config.peers = {{.node = 0}, {.node = 2}, {.node = 3}};
  aggregate::TreeConfig relay{
      .member = true,
      .parent = hop::PeerIndex(0),
      .children = {{hop::PeerIndex(1), 1, {2}}, {hop::PeerIndex(2), 2, {3}}},
      .share = {0, 1}};
  aggregate::TreeConfig root{.member = true,
                             .parent = hop::kNoPeer,
                             .children = {{hop::PeerIndex(1), 4, {0, 2, 3}}},
                             .share = {1, 1}};
  config.routes = {{.from = 3, .nodes = {1, 2}}, {.from = 2, .nodes = {3, 1}}};
  config.hosts = {{0, 1}, {1, 1}, {2, 1}, {3, 2}};
  config.trees = {relay, root};
  config.local_ranks = {{.arena = nullptr, .rank = 1}};
  return config;
}

}  // namespace

TableNode::TableNode() : node_(std::make_unique<CoreNode>(table_config())) {
  GP_ASSERT(finish(kRound - 1));
  GP_ASSERT(node_->submit(0, kRound, kElements) == job::SubmitResult::kAccepted);
  gather({0, 1, 8, 9});
  first_sent_us_ = hop::clock_us(now_);
  (void)node_->drain(now_);
  pass(Duration::ms(2));
  gather({2, 3, 10, 11});
  (void)node_->drain(now_);
  pass(hop::kMaxAckDelay);
  (void)node_->drain(now_);  // takes the delayed acks
}

void TableNode::gather(std::initializer_list<std::uint32_t> blocks) {
  for (const std::uint32_t block : blocks) {
    if (block >= kTreeBlocks) {
      deliver(push(2, 1, block));
    } else {
      deliver(push(2, 0, block));
      deliver(push(3, 0, block));
    }
  }
}

PacketBuilder::Round TableNode::round_of(std::uint32_t round) const {
  return {.job = 1,
          .epoch = 1,
          .id = round,
          .geometry = Geometry::of(ElementType::kFloat32, kElements, kMinBlockBytes)};
}

PacketBuilder TableNode::data(wire::PacketType type, std::uint32_t block, std::uint32_t round,
                              std::initializer_list<std::uint16_t> ranks) const {
  const PacketBuilder::Round known = round_of(round);
  std::vector<std::byte> bytes;
  for (std::uint32_t e = 0; block < known.geometry.blocks && e < known.geometry.block_elements;
       ++e) {
    float sum = 0;
    for (const std::uint16_t rank : ranks) {
      sum += contribution(round, rank, block * known.geometry.block_elements + e);
    }
    const auto* raw = reinterpret_cast<const std::byte*>(&sum);
    bytes.insert(bytes.end(), raw, raw + sizeof sum);
  }
  return PacketBuilder::block(type, known, block)
      .payload(std::move(bytes))
      .contributors(static_cast<std::uint16_t>(ranks.size()))
      .timestamp_us(hop::clock_us(now_));
}

PacketBuilder TableNode::push(std::uint16_t from, std::uint8_t tree, std::uint32_t block,
                              std::uint32_t round) const {
  const auto type = wire::PacketType::kPush;
  PacketBuilder packet = tree == 1   ? data(type, block, round, {0, 2, 3, 4})
                         : from == 3 ? data(type, block, round, {3, 4})
                                     : data(type, block, round, {2});
  return packet.sender(from).tree(tree);
}

PacketBuilder TableNode::result(std::uint32_t block, std::uint32_t round) const {
  return data(wire::PacketType::kResult, block, round, {0, 1, 2, 3, 4}).sender(0).tree(0);
}

PacketBuilder TableNode::push_ack() const {
  return PacketBuilder::ack(wire::PacketType::kPushAck, round_of(kRound)).sender(0).tree(0);
}

PacketBuilder TableNode::result_ack() const {
  return PacketBuilder::ack(wire::PacketType::kResultAck, round_of(kRound)).sender(2).tree(1);
}

void TableNode::deliver(const PacketBuilder& packet, int via) {
  PacketBuilder tagged = packet;
  if (!tagged.has_key()) tagged.key(kKey);
  if (!tagged.has_receiver()) tagged.receiver(kSelf);
  if (!tagged.number()) tagged.number(last_number_ + 1);
  last_number_ =
      std::max<std::uint64_t>(last_number_, static_cast<std::uint32_t>(*tagged.number()));
  const std::uint16_t from = via < 0 ? packet.sender() : static_cast<std::uint16_t>(via);
  if (!tagged.has_writer()) tagged.writer(from);
  node_->deliver(from, tagged.bytes(), now_);
}

std::uint32_t TableNode::in_flight() const {
  std::uint32_t sum = 0;
  for (const hop::Peer& peer : node_->job().peers()) sum += peer.flow.in_flight();
  return sum;
}

std::optional<SeenPacket> TableNode::urgent_ack() {
  std::vector<std::byte> out(wire::kMaxAckBytes);
  const auto ack = node_->job().poll_ack(out, now_);
  if (!ack) return std::nullopt;
  out.resize(ack->length_bytes);
  return Sent{ack->node, out}.seen();
}

/// Acknowledges a block, and answers a push with its result.
void TableNode::answer(const Sent& packet, std::uint32_t round) {
  const SeenPacket h = packet.seen();
  const bool is_push = h.type == wire::PacketType::kPush;
  if ((!is_push && h.type != wire::PacketType::kResult) || h.round != round) return;
  const std::uint32_t at = h.block % kTreeBlocks;
  const auto type = is_push ? wire::PacketType::kPushAck : wire::PacketType::kResultAck;
  deliver(PacketBuilder::ack(type, round_of(round))
              .sender(packet.to)
              .tree(h.tree)
              .echo_us(h.timestamp_us)
              .words(0, {std::uint64_t{1} << at}));
  if (is_push) deliver(result(h.block, round));
}

bool TableNode::done(std::uint32_t round) {
  for (const job::Event& event : node_->events()) {
    if (event.kind != job::Event::Kind::kRoundDone || event.round != round) continue;
    return event.contributors == kWorld && node_->holds_sum(0, round, kElements);
  }
  return false;
}

bool TableNode::finish(std::uint32_t round) {
  // The constructor has submitted kRound. A second submission would write over results.
  if (round != kRound) (void)node_->submit(0, round, kElements);
  const std::uint32_t first = round % 2 == 0 ? 0 : kTreeBlocks;  // of tree 0; the trees alternate
  for (std::uint32_t i = 0; i < kTreeBlocks; ++i) {
    deliver(push(2, 0, first + i, round));
    deliver(push(3, 0, first + i, round));
    deliver(push(2, 1, kTreeBlocks - first + i, round));
  }
  bool ended = false;
  for (int turn = 0; turn < 10'000; ++turn) {
    const std::vector<Sent> packets = node_->drain(now_);
    for (const Sent& packet : packets) answer(packet, round);
    ended = done(round) || ended;
    if (ended && packets.empty() && in_flight() == 0) return true;
    if (turn == kPatience) {  // pushes that were acked before are not sent again
      for (std::uint32_t i = 0; i < kTreeBlocks; ++i) deliver(result(first + i, round));
    }
    pass(Duration::ms(1));
    node_->node().tick(now_);
  }
  return false;
}

}  // namespace gradplane::testing
