// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/model/geometry.h"
#include "dataplane/wire/packet.h"

namespace gradplane::testing {

/// A packet, field by field: `PacketBuilder::push(round, block).from(3).tree(1).bytes()`. Starts
/// as a valid one of a round of `Round`; each call changes one thing about it.
class PacketBuilder {
 public:
  /// What all nodes know of the round that packets are made for.
  struct Round {
    std::uint32_t job = 1;
    std::uint32_t epoch = 1;
    std::uint32_t id = 0;
    Geometry geometry;
  };

  static PacketBuilder block(wire::PacketType type, const Round& round, std::uint32_t index) {
    PacketBuilder b(type, round);
    b.header_.flags = wire::kFlagCritical;
    b.header_.element_type = round.geometry.type;
    b.header_.block = index;
    b.header_.contributors = 1;
    b.header_.round_elements = round.geometry.elements;
    b.header_.bucket = round.geometry.bucket;
    if (index < round.geometry.blocks) {
      b.header_.elements = static_cast<std::uint16_t>(round.geometry.elements_in(index));
      b.payload_.resize(round.geometry.bytes_in(index));
    }
    return b;
  }
  static PacketBuilder ack(wire::PacketType type, const Round& round) {
    PacketBuilder b(type, round);
    b.is_ack_ = true;
    return b;
  }
  static PacketBuilder grant(const Round& round, const wire::GrantBody& body) {
    PacketBuilder b(wire::PacketType::kGrant, round);
    b.payload_.resize(wire::kGrantBodyBytes);
    std::vector<std::byte> packet(wire::kHeaderBytes + wire::kGrantBodyBytes);
    wire::write_grant(packet, b.header_, body);
    std::memcpy(b.payload_.data(), packet.data() + wire::kHeaderBytes, wire::kGrantBodyBytes);
    return b;
  }
  static PacketBuilder control(std::size_t bytes) {
    PacketBuilder b(wire::PacketType::kControl, {});
    b.header_.job = b.header_.epoch = 0;
    b.payload_.resize(bytes);
    return b;
  }

  PacketBuilder& type(wire::PacketType v) { return set(header_.type, v); }
  PacketBuilder& flags(std::uint8_t v) { return set(header_.flags, v); }
  PacketBuilder& element_type(ElementType v) { return set(header_.element_type, v); }
  PacketBuilder& tree(std::uint8_t v) { return set(header_.tree, v); }
  PacketBuilder& job(std::uint32_t v) { return set(header_.job, v); }
  PacketBuilder& epoch(std::uint32_t v) { return set(header_.epoch, v); }
  PacketBuilder& round(std::uint32_t v) { return set(header_.round, v); }
  PacketBuilder& index(std::uint32_t v) { return set(header_.block, v); }
  PacketBuilder& sender(std::uint16_t v) { return set(header_.sender, v); }
  PacketBuilder& elements(std::uint16_t v) { return set(header_.elements, v); }
  PacketBuilder& contributors(std::uint16_t v) { return set(header_.contributors, v); }
  PacketBuilder& bucket(std::uint16_t v) { return set(header_.bucket, v); }
  PacketBuilder& timestamp_us(std::uint32_t v) { return set(header_.timestamp_us, v); }
  PacketBuilder& round_elements(std::uint32_t v) { return set(header_.round_elements, v); }
  PacketBuilder& demand(std::uint32_t sent_blocks, std::uint16_t waiting_blocks) {
    header_.waiting_blocks = waiting_blocks;
    return set(header_.sent_blocks, sent_blocks);
  }
  PacketBuilder& round_trip(std::uint16_t v) { return set(header_.round_trip, v); }
  PacketBuilder& echo_us(std::uint32_t v) { return set(ack_.echo_us, v); }
  PacketBuilder& ack_delay_us(std::uint32_t v) { return set(ack_.ack_delay_us, v); }
  PacketBuilder& marked_packets(std::uint32_t v) { return set(ack_.marked_packets, v); }
  PacketBuilder& payload(std::vector<std::byte> v) { return set(payload_, std::move(v)); }
  PacketBuilder& words(std::uint32_t first, std::vector<std::uint64_t> v) {
    header_.block = first;
    header_.elements = static_cast<std::uint16_t>(v.size());
    return set(words_, std::move(v));
  }
  PacketBuilder& key(const wire::Key& v) { return set(key_, std::optional(v)); }
  PacketBuilder& receiver(std::uint16_t node) {
    return set(receiver_, std::optional(wire::Receiver::node(node)));
  }
  /// Changes a byte of the finished packet, after the tag was made.
  PacketBuilder& poke(std::size_t offset, std::uint8_t v) {
    pokes_.push_back({offset, v});
    return *this;
  }
  PacketBuilder& cut_to(std::size_t bytes) { return set(length_, std::optional(bytes)); }
  PacketBuilder& longer_by(std::size_t bytes) { return set(extra_bytes_, bytes); }

  std::uint16_t sender() const { return header_.sender; }
  bool has_key() const { return key_.has_value(); }
  bool has_receiver() const { return receiver_.has_value(); }

  std::vector<std::byte> bytes() const {
    std::vector<std::byte> out(wire::kHeaderBytes + payload_.size());
    if (is_ack_) {
      out.resize(wire::kHeaderBytes + wire::kAckBodyBytes + words_.size() * sizeof(words_[0]));
      wire::write_ack(out, header_, ack_, words_);
    } else {
      wire::write_header(out, header_);
      if (!payload_.empty()) {
        std::memcpy(out.data() + wire::kHeaderBytes, payload_.data(), payload_.size());
      }
    }
    if (key_) wire::authenticate(out, *key_, receiver_.value_or(wire::Receiver::node(0)));
    for (const Poke& p : pokes_) out[p.offset] = static_cast<std::byte>(p.value);
    out.resize(length_.value_or(out.size()) + extra_bytes_);
    return out;
  }

 private:
  struct Poke {
    std::size_t offset;
    std::uint8_t value;
  };

  PacketBuilder(wire::PacketType type, const Round& round) {
    header_.type = type;
    header_.job = round.job;
    header_.epoch = round.epoch;
    header_.round = round.id;
  }
  template <typename T>
  PacketBuilder& set(T& field, T value) {
    field = std::move(value);
    return *this;
  }

  wire::Header header_;
  bool is_ack_ = false;
  wire::AckBody ack_;
  std::vector<std::uint64_t> words_;
  std::vector<std::byte> payload_;
  std::optional<wire::Key> key_;
  std::optional<wire::Receiver> receiver_;
  std::vector<Poke> pokes_;
  std::optional<std::size_t> length_;
  std::size_t extra_bytes_ = 0;
};

}  // namespace gradplane::testing
