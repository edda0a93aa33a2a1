// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/base/time.h"
#include "dataplane/model/element_type.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/loss_bounds.h"

/// What two nodes say to each other in a UDP payload. docs/wire-protocol.md draws it. No state:
/// bytes in, a checked value out, and back. Whether a value fits a round is the core's question.
namespace gradplane::wire {

inline constexpr std::uint16_t kMagic = 0x6770;  // "gp"
inline constexpr std::uint8_t kVersion = 4;
inline constexpr std::size_t kHeaderBytes = 56;
static_assert(kHeaderBytes <= kMaxHeaderBytes);

enum class PacketType : std::uint8_t {
  kPush = 1,       // a block on its way to the root: payload
  kResult = 2,     // a summed block on its way down: payload
  kPushAck = 3,    // which pushed blocks of a round have arrived: AckBody and bitmap words
  kResultAck = 4,  // the same for results
  kControl = 5,    // a session message; its body is control/session's business
  kGrant = 6,      // how many blocks the receiver of this packet may send: GrantBody
};

/// Header flags.
inline constexpr std::uint8_t kFlagCritical = 1;        // touches a tensor whose loss bound is 0
inline constexpr std::uint8_t kFlagRetransmission = 2;  // sent before
inline constexpr std::uint8_t kFlagLast = 4;            // nothing new follows in this round
inline constexpr std::uint8_t kFlagPartial = 8;         // result: lacks some rank's contribution
inline constexpr std::uint8_t kFlagEnded = 16;          // ack: the round has ended at the sender
inline constexpr std::uint8_t kFlagComplete = 32;       // ack: every block of the edge has arrived
inline constexpr std::uint8_t kFlagClosed = 64;    // ack: what is not in the bitmap will not enter
inline constexpr std::uint8_t kFlagBounded = 128;  // push: the sender knows the bucket's bounds

/// The fields of a packet, in host order. `block`, `elements` and `contributors` describe a
/// payload; in an ack `block` is the first bitmap word and `elements` the number of words.
struct Header {
  PacketType type = PacketType::kPush;
  std::uint8_t flags = 0;
  ElementType element_type = ElementType::kFloat32;
  std::uint8_t tree = 0;
  std::uint32_t job = 0;
  std::uint32_t epoch = 0;
  std::uint32_t round = 0;
  std::uint32_t block = 0;
  std::uint16_t sender = 0;
  std::uint16_t elements = 0;
  std::uint16_t contributors = 0;
  std::uint16_t bucket = 0;          // of a block: whose tensors it holds; 0: of none, so exact
  std::uint32_t timestamp_us = 0;    // the sender's clock when it sent, modulo 2^32
  std::uint32_t round_elements = 0;  // of the whole bucket; 0 in acks
  // Of blocks, from this sender to this receiver in this job; else 0 (but see AckBody).
  std::uint32_t sent_blocks = 0;     // since the plan began, with this one, modulo 2^32
  std::uint16_t waiting_blocks = 0;  // that could go now; at most this many are told
  std::uint16_t round_trip = 0;      // as the sender measures it, in kRoundTripUnit; 0: not yet
  std::uint64_t tag = 0;             // authentication; 0 where it is off
};

inline constexpr Duration kRoundTripUnit = Duration::us(16);

/// What an ack says besides its bitmap.
struct AckBody {
  std::uint32_t echo_us = 0;             // timestamp of the newest packet that it acknowledges
  std::uint32_t ack_delay_us = 0;        // how long the receiver held that back
  std::uint32_t unscheduled_blocks = 0;  // as in GrantBody; 0: says nothing
  std::uint32_t total_blocks = 0;        // as in GrantBody; means nothing where that is 0
  /// Packets with blocks, used or not, that came from the sender in this job since the plan began
  /// with ECN's congestion experienced, modulo 2^32. A total, as in AccECN (RFC 9768), so that no
  /// mark is lost with an ack or counted twice. In the header, where blocks have sent_blocks.
  std::uint32_t marked_packets = 0;
};
inline constexpr std::size_t kAckBodyBytes = 16;
inline constexpr std::size_t kMaxAckWords = kMaxBlocksPerRound / 64;
inline constexpr std::size_t kMaxAckBytes = kHeaderBytes + kAckBodyBytes + kMaxAckWords * 8;
static_assert(kMaxAckBytes <= 1472, "an ack of the largest round fits a 1500-byte MTU");

/// What the receiver of blocks lets a sender do.
struct GrantBody {
  /// The sender may send while Header::sent_blocks is less; modulo 2^32. Never becomes smaller, so
  /// that a lost grant is made good by the next.
  std::uint32_t total_blocks = 0;
  /// And whatever was granted, while fewer than these are in flight.
  std::uint32_t unscheduled_blocks = 0;
};
inline constexpr std::size_t kGrantBodyBytes = 8;

/// Why a packet was not even a packet.
enum class ParseError : std::uint8_t {
  kTooShort,
  kBadMagic,
  kBadVersion,
  kBadHeaderLength,
  kBadType,
  kBadField,
  kBadLength,
};

struct Packet {
  Header header;
  std::span<const std::byte>
      payload;  // of the datagram: block bytes, ack body and words, or control
};

/// Checks everything that a packet says about itself. `error` is set when there is no packet.
std::optional<Packet> parse(std::span<const std::byte> datagram, ParseError& error);

/// Writes kHeaderBytes. `out` holds at least that many.
void write_header(std::span<std::byte> out, const Header& header);

/// Writes the body of an ack after its header; `words` are bitmap words from header.block on.
/// Returns the bytes of the whole packet. `out` holds kMaxAckBytes.
std::size_t write_ack(std::span<std::byte> out, const Header& header, const AckBody& body,
                      std::span<const std::uint64_t> words);

/// Reads an ack's payload, as parse() has checked it. Returns the words that were read.
std::size_t read_ack(const Packet& packet, AckBody& body,
                     std::array<std::uint64_t, kMaxAckWords>& words);

/// Writes a whole grant after `header`. Returns its bytes. `out` holds kHeaderBytes +
/// kGrantBodyBytes.
std::size_t write_grant(std::span<std::byte> out, const Header& header, const GrantBody& body);
/// Reads a grant's payload, as parse() has checked it.
GrantBody read_grant(const Packet& packet);

using Key = std::array<std::byte, 16>;

/// For whom a packet is. No field of the header says it, but the tag covers it. It is a type of its
/// own so that nobody can pass a sender in its place.
class Receiver {
 public:
  static constexpr Receiver node(std::uint16_t id) { return Receiver(id); }
  /// What stands in the place of the tag while the tag is computed.
  constexpr std::uint64_t covered() const { return covered_; }

 private:
  constexpr explicit Receiver(std::uint64_t covered) : covered_(covered) {}
  std::uint64_t covered_;
};

/// Computes the tag over the whole packet, in which the receiver stands in the place of the tag,
/// and writes it in.
void authenticate(std::span<std::byte> packet, const Key& key, Receiver receiver);
/// True when the tag fits the packet, the key and the receiver.
bool is_authentic(std::span<const std::byte> packet, const Key& key, Receiver receiver);

}  // namespace gradplane::wire
