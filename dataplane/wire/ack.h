// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/wire/envelope.h"
#include "dataplane/wire/extension.h"
#include "dataplane/wire/seal.h"

/// Packets about blocks that went in the other direction: acks and grants.
namespace gradplane::wire {

/// The round and the edge that an ack is about.
struct AckHeader {
  std::uint16_t epoch = 0;  // the plan's epoch, modulo 2^16
  std::uint8_t tree = 0;
  // The path of the echo and the marks: 0 is the direct one, then routes and the group.
  std::uint8_t path = 0;
  std::uint32_t round = 0;
  // The bitmap's first word, at most kMaxAckWords; every block before it has arrived.
  std::uint16_t first_word = 0;
};

/// The fields of an ack besides its bitmap.
struct AckBody {
  std::uint16_t loss = 0;          // loss share of packets from the ack's receiver, in kLossUnit
  std::uint32_t echo_us = 0;       // sending time of the newest packet that it acknowledges
  std::uint32_t ack_delay_us = 0;  // how long the ack was held back
  std::uint32_t unscheduled_blocks = 0;  // as in Grant; 0: there is no grant
  std::uint32_t total_blocks = 0;        // as in Grant; meaningless if unscheduled_blocks is 0
  /// How many blocks and rows of parity, used or not, have come in packets with ECN's congestion
  /// experienced from the ack's receiver, over the ack's path and in this job; modulo 2^32. It is a
  /// total, as in AccECN (RFC 9768), so that no mark is lost with an ack or counted twice.
  std::uint32_t marked_packets = 0;
  /// All earlier rounds have ended at the sender of the ack.
  std::uint32_t oldest_round = 0;
};

inline constexpr double kLossUnit = 1.0 / 65536;
inline constexpr std::size_t kMaxAckWords = kMaxBlocksPerRound / 64;
static_assert(kMaxAckWords <= UINT8_MAX);
inline constexpr std::size_t kAckFixedBytes = 36;  // between the envelope and the variable part
/// The longest ack, without a source route.
inline constexpr std::size_t kMaxAckBytes =
    kEnvelopeBytes + kAckFixedBytes + kMaxAckWords * sizeof(std::uint64_t) + kTagBytes;
static_assert(kMaxAckBytes + route_words(kMaxRouteNodes) * kExtensionWordBytes <=
                  kMinMtuPayloadBytes,
              "an ack of the largest round fits every MTU");

struct AckPacket {
  const Envelope* envelope = nullptr;
  AckHeader header;
  AckBody body;
  Extension extension;
  Numbers<std::uint64_t> words;
};

/// Reads an ack, and checks everything after the envelope that can be checked without its round.
/// `packet` is without tag; see open(). kNone: every field of `out` is set; it refers to `envelope`
/// and `packet`.
[[nodiscard]] ParseError read_ack(const Envelope& envelope, std::span<const std::byte> packet,
                                  AckPacket& out);

/// Writes an ack and leaves room for its tag. Returns the length of the whole packet, including the
/// tag.
std::size_t write_ack(std::span<std::byte> out, const Envelope& envelope, const AckHeader& header,
                      const AckBody& body, std::span<const std::uint64_t> words,
                      const ExtensionFields& extension = {});

/// What the receiver of blocks allows a sender.
struct Grant {
  std::uint16_t epoch = 0;  // the plan's epoch, modulo 2^16
  /// The sender may send while HopFeedback::sent_blocks is less than this; modulo 2^32. It never
  /// decreases, so the next grant repairs a lost one.
  std::uint32_t total_blocks = 0;
  /// The sender may also send, without a grant, while fewer than this many blocks are in flight.
  std::uint32_t unscheduled_blocks = 0;
};
inline constexpr std::size_t kGrantBytes = kEnvelopeBytes + 12 + kTagBytes;

/// Read and write a grant, as for acks.
[[nodiscard]] ParseError read_grant(std::span<const std::byte> packet, Grant& out);
std::size_t write_grant(std::span<std::byte> out, const Envelope& envelope, const Grant& grant);

}  // namespace gradplane::wire
