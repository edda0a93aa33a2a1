// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "dataplane/model/geometry.h"
#include "dataplane/wire/ack.h"
#include "dataplane/wire/block.h"
#include "dataplane/wire/seal.h"

namespace gradplane::testing {

/// Where a block's payload begins in a packet without an extension.
inline constexpr std::size_t kPayloadAt = wire::kBlockOverheadBytes - wire::kTagBytes;
/// Where an ack's bitmap begins in a packet without an extension.
inline constexpr std::size_t kBitmapAt = wire::kEnvelopeBytes + wire::kAckFixedBytes;

/// Builds a packet field by field: `PacketBuilder::block(type, round,
/// index).sender(3).tree(1).bytes()`. It starts as a valid packet of a round of `Round`, and each
/// call changes one field.
class PacketBuilder {
 public:
  /// What all nodes know of the packet's round.
  struct Round {
    std::uint32_t job = 1;
    std::uint32_t epoch = 1;
    std::uint32_t id = 0;
    Geometry geometry;
  };

  static PacketBuilder block(wire::PacketType type, const Round& round, std::uint32_t index) {
    PacketBuilder b(type, round);
    b.envelope_.flags = wire::kFlagCritical;
    b.block_.bucket = round.geometry.bucket;
    b.block_.block = static_cast<std::uint16_t>(index);
    b.block_.round_elements = round.geometry.elements;
    b.block_.contributors = 1;
    b.block_.element_type = round.geometry.type;
    b.block_.operation = round.geometry.operation;
    b.block_.source = round.geometry.source;
    b.block_.reduction = round.geometry.reduction;
    if (index < round.geometry.blocks) b.payload_.resize(round.geometry.bytes_in(index));
    return b;
  }
  static PacketBuilder ack(wire::PacketType type, const Round& round) { return {type, round}; }
  static PacketBuilder grant(const Round& round, const wire::Grant& grant) {
    PacketBuilder b(wire::PacketType::kGrant, round);
    b.grant_.total_blocks = grant.total_blocks;
    b.grant_.unscheduled_blocks = grant.unscheduled_blocks;
    return b;
  }
  static PacketBuilder control(std::size_t bytes) {
    PacketBuilder b(wire::PacketType::kControl, {});
    b.envelope_.job = 0;
    b.payload_.resize(bytes);
    return b;
  }

  PacketBuilder& type(wire::PacketType v) { return set(envelope_.type, v); }
  PacketBuilder& flags(std::uint8_t v) { return set(envelope_.flags, v); }
  /// For parity, the block's index is the number of the row.
  PacketBuilder& parity_rows(std::uint8_t v) { return set(envelope_.parity_rows, v); }
  PacketBuilder& job(std::uint32_t v) { return set(envelope_.job, v); }
  PacketBuilder& sender(std::uint16_t v) { return set(envelope_.sender, v); }
  PacketBuilder& timestamp_us(std::uint32_t v) { return set(envelope_.timestamp_us, v); }
  /// The full packet number. Without it each call of bytes() takes a new number.
  PacketBuilder& number(std::uint64_t v) { return set(number_, std::optional(v)); }
  PacketBuilder& epoch(std::uint16_t v) {
    block_.epoch = ack_.epoch = grant_.epoch = v;
    return *this;
  }
  PacketBuilder& tree(std::uint8_t v) {
    block_.tree = ack_.tree = v;
    return *this;
  }
  PacketBuilder& round(std::uint32_t v) {
    block_.round = ack_.round = v;
    return *this;
  }
  PacketBuilder& index(std::uint16_t v) { return set(block_.block, v); }
  PacketBuilder& reduction(Reduction v) { return set(block_.reduction, v); }
  PacketBuilder& element_type(ElementType v) { return set(block_.element_type, v); }
  PacketBuilder& wire_type(WireType v) { return set(block_.wire_type, v); }
  PacketBuilder& operation(Operation v, std::uint16_t source = 0) {
    block_.operation = v;
    return set(block_.source, source);
  }
  /// Makes it an empty push.
  PacketBuilder& empty() { return flags(wire::kFlagPartial).contributors(0).payload({}); }
  PacketBuilder& contributors(std::uint16_t v) { return set(block_.contributors, v); }
  PacketBuilder& bucket(std::uint16_t v) { return set(block_.bucket, v); }
  PacketBuilder& round_elements(std::uint32_t v) { return set(block_.round_elements, v); }
  PacketBuilder& demand(std::uint32_t sent_blocks, std::uint16_t waiting_blocks) {
    hop_.waiting_blocks = waiting_blocks;
    return set(hop_.sent_blocks, sent_blocks);
  }
  PacketBuilder& round_trip(std::uint16_t v) { return set(hop_.round_trip, v); }
  PacketBuilder& loss(std::uint16_t v) { return set(body_.loss, v); }
  PacketBuilder& echo_us(std::uint32_t v) { return set(body_.echo_us, v); }
  PacketBuilder& ack_delay_us(std::uint32_t v) { return set(body_.ack_delay_us, v); }
  PacketBuilder& marked_packets(std::uint32_t v) { return set(body_.marked_packets, v); }
  PacketBuilder& oldest_round(std::uint32_t v) { return set(body_.oldest_round, v); }
  PacketBuilder& payload(std::vector<std::byte> v) { return set(payload_, std::move(v)); }
  PacketBuilder& words(std::uint32_t first, std::vector<std::uint64_t> v) {
    ack_.first_word = static_cast<std::uint16_t>(first);
    return set(words_, std::move(v));
  }
  PacketBuilder& coverage(std::vector<std::uint64_t> v) { return set(coverage_, std::move(v)); }
  /// `next`: the index in `v` of the packet's next node.
  PacketBuilder& route(std::vector<std::uint16_t> v, std::uint8_t next = 0) {
    route_next_ = next;
    return set(route_, std::move(v));
  }
  PacketBuilder& path(std::uint8_t v) { return set(ack_.path, v); }

  PacketBuilder& key(const wire::Key& v) { return set(key_, std::optional(v)); }
  /// The node that made the tag. It is the sender, unless a relay made it.
  PacketBuilder& writer(std::uint16_t node) { return set(writer_, std::optional(node)); }
  PacketBuilder& receiver(std::uint16_t node) {
    return set(receiver_, std::optional(wire::Receiver::node(node)));
  }

  /// Addresses the packet to all children of its sender in this tree at once.
  PacketBuilder& for_group(std::uint16_t tree) {
    has_hop_ = false;
    return set(receiver_, std::optional(wire::Receiver::group(tree)));
  }
  PacketBuilder& without_hop() { return set(has_hop_, false); }
  PacketBuilder& with_hop() { return set(has_hop_, true); }

  // Changes a byte before the tag is made, as a node with the key could.
  PacketBuilder& write(std::size_t offset, std::uint8_t v) {
    writes_.push_back({offset, v});
    return *this;
  }
  PacketBuilder& longer_by(std::ptrdiff_t bytes) { return set(longer_by_, bytes); }
  // Changes a byte after the tag is made, as the network could.
  PacketBuilder& poke(std::size_t offset, std::uint8_t v) {
    pokes_.push_back({offset, v});
    return *this;
  }
  PacketBuilder& cut_to(std::size_t bytes) { return set(cut_to_, std::optional(bytes)); }

  std::uint16_t sender() const { return envelope_.sender; }
  std::optional<std::uint64_t> number() const { return number_; }
  bool has_key() const { return key_.has_value(); }
  bool has_writer() const { return writer_.has_value(); }
  bool has_receiver() const { return receiver_.has_value(); }

  std::vector<std::byte> bytes() const {
    std::vector<std::byte> out = untagged();
    out.resize(out.size() + static_cast<std::size_t>(longer_by_));
    for (const Poke& w : writes_) out[w.offset] = static_cast<std::byte>(w.value);
    if (kind_ != wire::PacketType::kControl) seal(out);
    for (const Poke& p : pokes_) out[p.offset] = static_cast<std::byte>(p.value);
    out.resize(cut_to_.value_or(out.size()));
    return out;
  }

 private:
  struct Poke {
    std::size_t offset;
    std::uint8_t value;
  };

  PacketBuilder(wire::PacketType type, const Round& round) : kind_(type) {
    envelope_.type = type;
    envelope_.job = round.job;
    block_.round = ack_.round = round.id;
    epoch(static_cast<std::uint16_t>(round.epoch));
  }
  template <typename T>
  PacketBuilder& set(T& field, T value) {
    field = std::move(value);
    return *this;
  }

  std::vector<std::byte> untagged() const {
    std::vector<std::byte> out(2 * kMaxDatagramBytes);
    const wire::ExtensionFields extension{
        .coverage = coverage_, .route = route_, .route_next = route_next_};
    std::size_t size = wire::kEnvelopeBytes;
    if (wire::is_ack(kind_)) {
      const wire::ExtensionFields of_acks{.coverage = {}, .route = route_};
      size = wire::write_ack(out, envelope_, ack_, body_, words_, of_acks) - wire::kTagBytes;
    } else if (kind_ == wire::PacketType::kGrant) {
      size = wire::write_grant(out, envelope_, grant_) - wire::kTagBytes;
    } else if (kind_ == wire::PacketType::kControl) {
      wire::write_envelope(out, envelope_);
    } else {
      size = wire::write_block(out, envelope_, block_, has_hop_ ? &hop_ : nullptr, extension);
    }
    out.resize(size + payload_.size());
    if (!payload_.empty()) std::memcpy(out.data() + size, payload_.data(), payload_.size());
    return out;
  }

  void seal(std::vector<std::byte>& packet) const {
    packet.resize(packet.size() + wire::kTagBytes);
    const std::uint64_t number = number_ ? *number_ : ++last_number_;
    if (key_) {
      wire::seal(packet, wire::Gmac(*key_),
                 {.writer = writer_.value_or(envelope_.sender),
                  .receiver = receiver_.value_or(wire::Receiver::node(0)),
                  .number = number});
    } else {
      wire::number_unsealed(packet, number);
    }
  }

  static inline std::uint64_t last_number_ = 0;

  wire::PacketType kind_;  // the layout to write, also where the type field is changed
  wire::Envelope envelope_;
  wire::BlockHeader block_;
  wire::HopFeedback hop_;
  bool has_hop_ = true;
  wire::AckHeader ack_;
  wire::AckBody body_;
  wire::Grant grant_;
  std::vector<std::uint64_t> words_;
  std::vector<std::byte> payload_;
  std::vector<std::uint64_t> coverage_;
  std::vector<std::uint16_t> route_;
  std::uint8_t route_next_ = 0;
  std::optional<std::uint64_t> number_;
  std::optional<wire::Key> key_;
  std::optional<std::uint16_t> writer_;
  std::optional<wire::Receiver> receiver_;
  std::vector<Poke> writes_;
  std::vector<Poke> pokes_;
  std::ptrdiff_t longer_by_ = 0;
  std::optional<std::size_t> cut_to_;
};

}  // namespace gradplane::testing
