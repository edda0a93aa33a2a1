// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/wire/envelope.h"
#include "dataplane/wire/extension.h"
#include "dataplane/wire/seal.h"

/// Packets about blocks that went the other way: acks and grants.
namespace gradplane::wire {

/// Which blocks of which round an ack is about.
struct AckHeader {
  std::uint16_t epoch = 0;  // of the plan, modulo 2^16
  std::uint8_t tree = 0;
  std::uint8_t path = 0;  // that the echo and the marks are of: 0 is the direct one, then routes
  std::uint32_t round = 0;
  std::uint16_t first_word = 0;  // of the bitmap, at most kMaxAckWords; every block before it has
                                 // arrived
};

/// What an ack says besides its bitmap.
struct AckBody {
  std::uint16_t loss = 0;                // of the packets of the ack's receiver, in kLossUnit
  std::uint32_t echo_us = 0;             // timestamp of the newest packet that it acknowledges
  std::uint32_t ack_delay_us = 0;        // how long the receiver held that back
  std::uint32_t unscheduled_blocks = 0;  // as in Grant; 0: says nothing
  std::uint32_t total_blocks = 0;        // as in Grant; means nothing where that is 0
  /// Packets with blocks, used or not, that came from the sender in this job since the plan began
  /// with ECN's congestion experienced, modulo 2^32. A total, as in AccECN (RFC 9768), so that no
  /// mark is lost with an ack or counted twice.
  std::uint32_t marked_packets = 0;
  /// All rounds before this one have ended at the sender of the ack.
  std::uint32_t oldest_round = 0;
};

inline constexpr double kLossUnit = 1.0 / 65536;
inline constexpr std::size_t kMaxAckWords = kMaxBlocksPerRound / 64;
static_assert(kMaxAckWords <= UINT8_MAX);
inline constexpr std::size_t kAckFixedBytes = 36;  // between the envelope and what varies
/// Of an ack without a source route.
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

/// Checks everything behind the envelope that an ack says about itself. `packet` has no tag any
/// more; see open(). kNone: every field of `out` is set, and points to `envelope` and `packet`.
[[nodiscard]] ParseError read_ack(const Envelope& envelope, std::span<const std::byte> packet,
                                  AckPacket& out);

/// Writes an ack and leaves room for its tag. Returns the bytes of the whole packet with the tag.
std::size_t write_ack(std::span<std::byte> out, const Envelope& envelope, const AckHeader& header,
                      const AckBody& body, std::span<const std::uint64_t> words,
                      const ExtensionFields& extension = {});

/// What the receiver of blocks lets a sender do.
struct Grant {
  std::uint16_t epoch = 0;  // of the plan, modulo 2^16
  /// The sender may send while HopFeedback::sent_blocks is less; modulo 2^32. Never becomes
  /// smaller, so that a lost grant is made good by the next.
  std::uint32_t total_blocks = 0;
  /// And whatever was granted, while fewer than these are in flight.
  std::uint32_t unscheduled_blocks = 0;
};
inline constexpr std::size_t kGrantBytes = kEnvelopeBytes + 12 + kTagBytes;

/// The same two for grants.
[[nodiscard]] ParseError read_grant(std::span<const std::byte> packet, Grant& out);
std::size_t write_grant(std::span<std::byte> out, const Envelope& envelope, const Grant& grant);

}  // namespace gradplane::wire
