// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/wire/ack.h"
#include "dataplane/wire/block.h"
#include "dataplane/wire/seal.h"
#include "dataplane/wire/sounding.h"

namespace gradplane::testing {

/// A packet as an observer without the key sees it. It has the fields of all types of packets side
/// by side. A field that the packet does not have is 0.
struct SeenPacket : wire::Envelope {
  std::uint16_t epoch = 0;
  std::uint32_t round = 0;
  std::uint8_t tree = 0;
  // Fields of blocks.
  std::uint16_t block = 0;
  std::uint16_t bucket = 0;
  std::uint32_t round_elements = 0;
  std::uint16_t contributors = 0;
  Operation operation = Operation::kAllReduce;
  std::uint16_t source = 0;
  WireType wire_type = WireType::kElements;
  ElementType element_type = ElementType::kFloat32;
  Reduction reduction = Reduction::kSum;
  wire::HopFeedback hop;
  std::span<const std::byte> payload;  // points into the datagram
  // Fields of acks.
  wire::AckBody ack;
  std::uint16_t first_word = 0;
  std::vector<std::uint64_t> words;
  // Fields of grants.
  wire::Grant grant;
  // Fields of soundings.
  wire::Sounding sounding;
};

/// Returns nothing if the datagram is not a packet.
inline std::optional<SeenPacket> see(std::span<const std::byte> datagram) {
  constexpr auto kGood = wire::ParseError::kNone;
  SeenPacket seen;
  if (wire::read_envelope(datagram, seen) != kGood) return std::nullopt;
  if (seen.type == wire::PacketType::kControl) return seen;
  const std::span<const std::byte> packet = wire::open_unsealed(datagram);
  if (wire::is_block(seen.type) || wire::is_parity(seen.type)) {
    wire::BlockPacket block;
    if (wire::read_block(seen, packet, block) != kGood) return std::nullopt;
    seen.epoch = block.header.epoch;
    seen.round = block.header.round;
    seen.tree = block.header.tree;
    seen.block = block.header.block;
    seen.bucket = block.header.bucket;
    seen.round_elements = block.header.round_elements;
    seen.contributors = block.header.contributors;
    seen.wire_type = block.header.wire_type;
    seen.operation = block.header.operation;
    seen.reduction = block.header.reduction;
    seen.source = block.header.source;
    seen.element_type = block.header.element_type;
    seen.hop = block.hop;
    seen.payload = block.payload;
  } else if (wire::is_ack(seen.type)) {
    wire::AckPacket ack;
    if (wire::read_ack(seen, packet, ack) != kGood) return std::nullopt;
    seen.epoch = ack.header.epoch;
    seen.round = ack.header.round;
    seen.tree = ack.header.tree;
    seen.first_word = ack.header.first_word;
    seen.ack = ack.body;
    for (std::size_t i = 0; i < ack.words.size(); ++i) seen.words.push_back(ack.words[i]);
  } else if (seen.type == wire::PacketType::kSounding) {
    if (wire::read_sounding(seen, packet, seen.sounding) != kGood) return std::nullopt;
    seen.epoch = seen.sounding.epoch;
  } else {
    if (wire::read_grant(packet, seen.grant) != kGood) return std::nullopt;
    seen.epoch = seen.grant.epoch;
  }
  return seen;
}

}  // namespace gradplane::testing
