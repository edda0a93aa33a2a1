// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/model/limits.h"

/// What two nodes say to each other in a UDP payload. docs/wire-protocol.md has a table for each
/// kind of packet. Nothing here has state: bytes come in and a checked value goes out, and back.
/// Whether a value fits a round is for the core to decide.
///
/// A receiver reads the envelope first. It names the job and the sender, and so the key and the
/// replay window. Nothing behind the envelope is looked at before the tag has been verified.
namespace gradplane::wire {

inline constexpr std::uint8_t kMagic = 0x67;  // "g"
inline constexpr std::uint8_t kVersion = 7;

enum class PacketType : std::uint8_t {
  kPush = 1,          // a block on its way to the root
  kResult = 2,        // a summed block on its way down
  kPushAck = 3,       // tells which pushed blocks of a round have arrived
  kResultAck = 4,     // the same for results
  kControl = 5,       // a session message, which control/session reads
  kGrant = 6,         // tells how many blocks the receiver of this packet may send
  kSounding = 7,      // padding that shows the rate of the link, or the answer to it
  kPushParity = 8,    // a row of parity of the pushes of a round
  kResultParity = 9,  // the same of results
};
constexpr bool is_block(PacketType type) {
  return type == PacketType::kPush || type == PacketType::kResult;
}
constexpr bool is_parity(PacketType type) {
  return type == PacketType::kPushParity || type == PacketType::kResultParity;
}
/// What parity is of; any other type is itself.
constexpr PacketType block_type(PacketType type) {
  if (type == PacketType::kPushParity) return PacketType::kPush;
  return type == PacketType::kResultParity ? PacketType::kResult : type;
}
constexpr bool is_ack(PacketType type) {
  return type == PacketType::kPushAck || type == PacketType::kResultAck;
}

// Flags of blocks.
inline constexpr std::uint8_t kFlagCritical = 1;        // touches a tensor whose loss bound is 0
inline constexpr std::uint8_t kFlagRetransmission = 2;  // has been sent before
inline constexpr std::uint8_t kFlagLast = 4;            // nothing new follows in this round
inline constexpr std::uint8_t kFlagPartial = 8;         // its bytes lack some rank's contribution
inline constexpr std::uint8_t kFlagBounded = 16;   // push: the sender knows the bucket's bounds
inline constexpr std::uint8_t kFlagHop = 32;       // has a hop extension
inline constexpr std::uint8_t kFlagCoverage = 64;  // its extension holds a coverage set
// A flag of soundings.
inline constexpr std::uint8_t kFlagAnswer = 1;  // answers a sounding, and is none
// A flag of acks and of answers to soundings.
inline constexpr std::uint8_t kFlagSlow =
    2;  // on the link to the sender a short sounding is enough
// Flags of acks.
inline constexpr std::uint8_t kFlagSound =
    4;  // the link to the ack's sender is not known: sound it
inline constexpr std::uint8_t kFlagAllowed = 8;  // of pushes: rounds of the bucket may close below
inline constexpr std::uint8_t kFlagEnded = 16;   // the round has ended at the sender
inline constexpr std::uint8_t kFlagComplete = 32;  // every block of the edge has arrived
inline constexpr std::uint8_t kFlagClosed = 64;    // what is not in the bitmap will not enter
// A flag of both.
inline constexpr std::uint8_t kFlagRoute = 128;  // its extension begins with a source route

/// Rows of parity that one round of an edge has, at most.
inline constexpr std::size_t kMaxParityRows = 32;

/// What is at the front of every packet, in host order.
struct Envelope {
  PacketType type = PacketType::kPush;
  std::uint8_t flags = 0;
  std::uint32_t job = 0;  // 0 in control packets
  std::uint16_t sender = 0;
  std::uint8_t extension_words = 0;  // of 8 bytes each
  /// Blocks: how many rows of parity there may be of their round; parity: how many there are.
  std::uint8_t parity_rows = 0;
  std::uint32_t number = 0;        // the low half of the packet number; see seal()
  std::uint32_t timestamp_us = 0;  // the sender's clock when it sent, modulo 2^32
};
/// A block that other nodes relay: it comes from the node before on its route, which need not be
/// its sender.
constexpr bool is_routed(const Envelope& envelope) {
  return is_block(envelope.type) && (envelope.flags & kFlagRoute) != 0;
}
/// A block for several receivers at once. It has nothing of the path to one of them.
constexpr bool is_for_group(const Envelope& envelope) {
  return is_block(envelope.type) && (envelope.flags & (kFlagHop | kFlagRoute)) == 0;
}
inline constexpr std::size_t kEnvelopeBytes = 20;
// What is written after the envelope is: by write_extension() and by seal().
inline constexpr std::size_t kFlagsAt = 3;
inline constexpr std::size_t kExtensionWordsAt = 10;
inline constexpr std::size_t kNumberAt = 12;

/// Why a packet was refused before its meaning was looked at.
enum class ParseError : std::uint8_t {
  kNone,
  kTooShort,
  kBadMagic,
  kBadVersion,
  kBadType,
  kBadField,
  kBadLength,
};

/// Reads and checks the first kEnvelopeBytes of a datagram and nothing else. A datagram that it
/// takes is long enough for a tag where packets of its type have one. kNone: `out` is filled. The
/// readers fill a value in place, because copies of it would cost more than they do.
[[nodiscard]] ParseError read_envelope(std::span<const std::byte> datagram, Envelope& out);

/// Writes kEnvelopeBytes. `out` holds at least that many.
void write_envelope(std::span<std::byte> out, const Envelope& envelope);

}  // namespace gradplane::wire
