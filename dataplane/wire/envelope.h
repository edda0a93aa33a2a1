// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/model/limits.h"

/// The packets that nodes exchange in UDP payloads. docs/wire-protocol.md has a table for each
/// kind. Nothing here has state: readers turn bytes into checked values, and writers turn values
/// into bytes. The job decides whether a value fits its round.
///
/// A receiver reads the envelope first. It names the job and the sender, and so the key and the
/// replay window. Nothing after the envelope is read before the tag has been verified.
namespace gradplane::wire {

inline constexpr std::uint8_t kMagic = 0x67;  // "g"
inline constexpr std::uint8_t kVersion = 7;

enum class PacketType : std::uint8_t {
  kPush = 1,          // a block on its way to the root
  kResult = 2,        // a summed block on its way down
  kPushAck = 3,       // reports which pushed blocks of a round have arrived
  kResultAck = 4,     // the same for results
  kControl = 5,       // a message of control/session
  kGrant = 6,         // says how many blocks the receiver of this packet may send
  kSounding = 7,      // padding to measure the rate of the link, or an answer to it
  kPushParity = 8,    // a row of parity over the pushes of a round
  kResultParity = 9,  // the same for results
};
constexpr bool is_block(PacketType type) {
  return type == PacketType::kPush || type == PacketType::kResult;
}
constexpr bool is_parity(PacketType type) {
  return type == PacketType::kPushParity || type == PacketType::kResultParity;
}
/// The type of the blocks of a parity packet; any other type is returned unchanged.
constexpr PacketType block_type(PacketType type) {
  if (type == PacketType::kPushParity) return PacketType::kPush;
  return type == PacketType::kResultParity ? PacketType::kResult : type;
}
constexpr bool is_ack(PacketType type) {
  return type == PacketType::kPushAck || type == PacketType::kResultAck;
}

// Flags of blocks.
// The block has elements of a tensor with loss bound 0.
inline constexpr std::uint8_t kFlagCritical = 1;
inline constexpr std::uint8_t kFlagRetransmission = 2;  // the block has been sent before
inline constexpr std::uint8_t kFlagLast = 4;            // no new block follows in this round
inline constexpr std::uint8_t kFlagPartial = 8;         // the block lacks some rank's contribution
inline constexpr std::uint8_t kFlagBounded = 16;   // push: the sender knows the bucket's bounds
inline constexpr std::uint8_t kFlagHop = 32;       // the packet has a hop extension
inline constexpr std::uint8_t kFlagCoverage = 64;  // the extension has a coverage set
// A flag of soundings.
inline constexpr std::uint8_t kFlagAnswer = 1;  // the packet is an answer, not a sounding
// A flag of acks and of answers to soundings.
// A short sounding is enough on the link from the packet's receiver to its sender.
inline constexpr std::uint8_t kFlagSlow = 2;
// Flags of acks.
// The rate of the link from the ack's receiver to its sender is not known: sound it.
inline constexpr std::uint8_t kFlagSound = 4;
// Push acks: the child may close rounds of the bucket early.
inline constexpr std::uint8_t kFlagAllowed = 8;
inline constexpr std::uint8_t kFlagEnded = 16;     // the round has ended at the ack's sender
inline constexpr std::uint8_t kFlagComplete = 32;  // every block of the edge has arrived
inline constexpr std::uint8_t kFlagClosed = 64;  // blocks that are not in the bitmap will not enter
// A flag of blocks and of acks.
inline constexpr std::uint8_t kFlagRoute = 128;  // the extension begins with a source route

/// The most rows of parity for one round of an edge.
inline constexpr std::size_t kMaxParityRows = 32;

/// The front of every packet, in host byte order.
struct Envelope {
  PacketType type = PacketType::kPush;
  std::uint8_t flags = 0;
  std::uint32_t job = 0;  // 0 in control packets
  std::uint16_t sender = 0;
  std::uint8_t extension_words = 0;  // length of the extension, in words of 8 bytes
  /// Blocks: how many rows of parity may follow for their round. Parity: how many rows there are.
  std::uint8_t parity_rows = 0;
  std::uint32_t number = 0;        // low half of the packet number; see seal()
  std::uint32_t timestamp_us = 0;  // sending time by the sender's clock, modulo 2^32
};
/// Whether other nodes relay the block. It then comes from the previous node on its route, which
/// need not be its sender.
constexpr bool is_routed(const Envelope& envelope) {
  return is_block(envelope.type) && (envelope.flags & kFlagRoute) != 0;
}
/// Whether the block is for several receivers at once. It then has no fields about the path to one
/// of them.
constexpr bool is_for_group(const Envelope& envelope) {
  return is_block(envelope.type) && (envelope.flags & (kFlagHop | kFlagRoute)) == 0;
}
inline constexpr std::size_t kEnvelopeBytes = 20;
// Places in the envelope that write_extension() and seal() write later.
inline constexpr std::size_t kFlagsAt = 3;
inline constexpr std::size_t kExtensionWordsAt = 10;
inline constexpr std::size_t kNumberAt = 12;

/// Why a packet was refused before its meaning was examined.
enum class ParseError : std::uint8_t {
  kNone,
  kTooShort,
  kBadMagic,
  kBadVersion,
  kBadType,
  kBadField,
  kBadLength,
};

/// Reads and checks the first kEnvelopeBytes of a datagram and nothing else. An accepted datagram
/// is long enough for a tag if packets of its type have one. kNone: `out` is filled. All readers
/// fill a value in place, because copying it would cost more than reading.
[[nodiscard]] ParseError read_envelope(std::span<const std::byte> datagram, Envelope& out);

/// Writes kEnvelopeBytes; `out` must have room for them.
void write_envelope(std::span<std::byte> out, const Envelope& envelope);

}  // namespace gradplane::wire
