// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/wire/packet.h"

#include <cstring>

#include "dataplane/base/assert.h"
#include "dataplane/base/bytes.h"
#include "dataplane/base/siphash.h"

namespace gradplane::wire {
namespace {

constexpr std::size_t kTagOffset = kHeaderBytes - sizeof(std::uint64_t);
constexpr std::uint8_t kFirstType = static_cast<std::uint8_t>(PacketType::kPush);
constexpr std::uint8_t kLastType = static_cast<std::uint8_t>(PacketType::kGrant);

bool is_data(PacketType type) {
  return type == PacketType::kPush || type == PacketType::kResult;
}
bool is_ack(PacketType type) {
  return type == PacketType::kPushAck || type == PacketType::kResultAck;
}

/// Whether the fields of a packet agree with each other and with the bytes that follow.
std::optional<ParseError> check_fields(const Header& h, std::size_t payload_bytes) {
  if (h.bucket > (is_data(h.type) ? kMaxBuckets : 0)) return ParseError::kBadField;
  if (is_data(h.type)) {
    // Only a result may hold nobody's contribution: what a root says of a block that never came.
    const bool may_be_empty = h.type == PacketType::kResult && (h.flags & kFlagPartial) != 0;
    if (h.elements == 0 || h.round_elements == 0) return ParseError::kBadField;
    if (h.contributors == 0 && !may_be_empty) return ParseError::kBadField;
    const std::size_t bytes = h.elements * element_bytes(h.element_type);
    if (bytes > kMaxBlockBytes || payload_bytes != bytes) return ParseError::kBadLength;
  } else if (is_ack(h.type)) {
    if (h.elements > kMaxAckWords || h.block > kMaxAckWords - h.elements)
      return ParseError::kBadField;
    if (payload_bytes != kAckBodyBytes + h.elements * sizeof(std::uint64_t)) {
      return ParseError::kBadLength;
    }
  } else if (h.type == PacketType::kGrant) {
    if (payload_bytes != kGrantBodyBytes) return ParseError::kBadLength;
  } else if (payload_bytes > kMaxControlBytes) {
    return ParseError::kBadLength;
  }
  return std::nullopt;
}

std::uint64_t tag_of(std::span<const std::byte> packet, const Key& key, Receiver receiver) {
  std::array<std::byte, kHeaderBytes> header;
  std::memcpy(header.data(), packet.data(), kHeaderBytes);
  const std::uint64_t covered = to_network_order(receiver.covered());
  std::memcpy(header.data() + kTagOffset, &covered, sizeof(covered));
  return siphash24(key, header, packet.subspan(kHeaderBytes));
}

}  // namespace

std::optional<Packet> parse(std::span<const std::byte> datagram, ParseError& error) {
  const auto fail = [&error](ParseError e) {
    error = e;
    return std::nullopt;
  };
  if (datagram.size() < kHeaderBytes) return fail(ParseError::kTooShort);
  ByteReader in(datagram);
  if (in.read<std::uint16_t>() != kMagic) return fail(ParseError::kBadMagic);
  if (in.read<std::uint8_t>() != kVersion) return fail(ParseError::kBadVersion);
  const auto type = in.read<std::uint8_t>();
  if (type < kFirstType || type > kLastType) return fail(ParseError::kBadType);
  Header h;
  h.type = static_cast<PacketType>(type);
  h.flags = in.read<std::uint8_t>();
  if (in.read<std::uint8_t>() != kHeaderBytes) return fail(ParseError::kBadHeaderLength);
  const auto element_type = in.read<std::uint8_t>();
  if (!is_element_type(element_type)) return fail(ParseError::kBadField);
  h.element_type = static_cast<ElementType>(element_type);
  h.tree = in.read<std::uint8_t>();
  h.job = in.read<std::uint32_t>();
  h.epoch = in.read<std::uint32_t>();
  h.round = in.read<std::uint32_t>();
  h.block = in.read<std::uint32_t>();
  h.sender = in.read<std::uint16_t>();
  h.elements = in.read<std::uint16_t>();
  h.contributors = in.read<std::uint16_t>();
  h.bucket = in.read<std::uint16_t>();
  h.timestamp_us = in.read<std::uint32_t>();
  h.round_elements = in.read<std::uint32_t>();
  h.sent_blocks = in.read<std::uint32_t>();
  h.waiting_blocks = in.read<std::uint16_t>();
  h.round_trip = in.read<std::uint16_t>();
  h.tag = in.read<std::uint64_t>();
  if (const auto bad = check_fields(h, in.rest().size())) return fail(*bad);
  return Packet{h, in.rest()};
}

void write_header(std::span<std::byte> out, const Header& h) {
  ByteWriter w(out.first(kHeaderBytes));
  w.write(kMagic);
  w.write(kVersion);
  w.write(static_cast<std::uint8_t>(h.type));
  w.write(h.flags);
  w.write(static_cast<std::uint8_t>(kHeaderBytes));
  w.write(static_cast<std::uint8_t>(h.element_type));
  w.write(h.tree);
  w.write(h.job);
  w.write(h.epoch);
  w.write(h.round);
  w.write(h.block);
  w.write(h.sender);
  w.write(h.elements);
  w.write(h.contributors);
  w.write(h.bucket);
  w.write(h.timestamp_us);
  w.write(h.round_elements);
  w.write(h.sent_blocks);
  w.write(h.waiting_blocks);
  w.write(h.round_trip);
  w.write(h.tag);
  GP_ASSERT(w.ok() && w.size() == kHeaderBytes);
}

std::size_t write_ack(std::span<std::byte> out, const Header& header, const AckBody& body,
                      std::span<const std::uint64_t> words) {
  GP_ASSERT(words.size() == header.elements);
  Header h = header;
  h.sent_blocks = body.marked_packets;
  write_header(out, h);
  ByteWriter w(out.subspan(kHeaderBytes));
  w.write(body.echo_us);
  w.write(body.ack_delay_us);
  w.write(body.unscheduled_blocks);
  w.write(body.total_blocks);
  for (const std::uint64_t word : words) w.write(word);
  GP_ASSERT(w.ok());
  return kHeaderBytes + w.size();
}

std::size_t read_ack(const Packet& packet, AckBody& body,
                     std::array<std::uint64_t, kMaxAckWords>& words) {
  ByteReader in(packet.payload);
  body.echo_us = in.read<std::uint32_t>();
  body.ack_delay_us = in.read<std::uint32_t>();
  body.unscheduled_blocks = in.read<std::uint32_t>();
  body.total_blocks = in.read<std::uint32_t>();
  body.marked_packets = packet.header.sent_blocks;
  const std::size_t count = packet.header.elements;
  for (std::size_t i = 0; i < count; ++i) words[i] = in.read<std::uint64_t>();
  GP_ASSERT(in.ok());
  return count;
}

std::size_t write_grant(std::span<std::byte> out, const Header& header, const GrantBody& body) {
  write_header(out, header);
  ByteWriter w(out.subspan(kHeaderBytes, kGrantBodyBytes));
  w.write(body.total_blocks);
  w.write(body.unscheduled_blocks);
  GP_ASSERT(w.ok() && w.size() == kGrantBodyBytes);
  return kHeaderBytes + kGrantBodyBytes;
}

GrantBody read_grant(const Packet& packet) {
  ByteReader in(packet.payload);
  GrantBody body;
  body.total_blocks = in.read<std::uint32_t>();
  body.unscheduled_blocks = in.read<std::uint32_t>();
  GP_ASSERT(in.ok());
  return body;
}

void authenticate(std::span<std::byte> packet, const Key& key, Receiver receiver) {
  const std::uint64_t tag = to_network_order(tag_of(packet, key, receiver));
  std::memcpy(packet.data() + kTagOffset, &tag, sizeof(tag));
}

bool is_authentic(std::span<const std::byte> packet, const Key& key, Receiver receiver) {
  std::uint64_t tag;
  std::memcpy(&tag, packet.data() + kTagOffset, sizeof(tag));
  return to_network_order(tag) == tag_of(packet, key, receiver);
}

}  // namespace gradplane::wire
