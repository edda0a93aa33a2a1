// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/base/time.h"
#include "dataplane/model/element_type.h"
#include "dataplane/model/loss_bounds.h"
#include "dataplane/model/operation.h"
#include "dataplane/model/reduction.h"
#include "dataplane/model/wire_type.h"
#include "dataplane/wire/envelope.h"
#include "dataplane/wire/extension.h"

/// Pushes and results: packets that carry a block.
namespace gradplane::wire {

/// Describes the block and nothing about its receiver, so it is the same for every receiver. The
/// number of the block's elements follows from the round's elements, the block's index and the
/// job's block size.
struct BlockHeader {
  std::uint16_t epoch = 0;  // the plan's epoch, modulo 2^16
  // The bucket whose tensors it holds; 0: none, so it is exact (only all_reduce and exchange have
  // buckets).
  std::uint16_t bucket = 0;
  std::uint32_t round = 0;
  std::uint8_t tree = 0;
  std::uint16_t block = 0;           // index in the round; for parity, the number of the row
  std::uint32_t round_elements = 0;  // elements of the whole round
  /// The number of contributions in the block. In parity over blocks with wire types,
  /// kParityTypesBit and the parity of these types.
  std::uint16_t contributors = 0;
  Operation operation = Operation::kAllReduce;
  std::uint16_t source = 0;  // broadcast: the source rank; exchange: the selection
  WireType wire_type = WireType::kElements;
  ElementType element_type = ElementType::kFloat32;
  Reduction reduction = Reduction::kSum;  // only for all_reduce and reduce_scatter
  /// Only for pushes of a bucket: how long the sender may still gather blocks from its own
  /// children, as a code (patience_code); 0: not stated.
  std::uint8_t patience = 0;

  /// Whether the packet has no payload: in an operation in which one rank alone contributes, the
  /// sender has nothing of the block; in an exchange, it sends its update to others.
  bool is_empty() const {
    return contributors == 0 && (!all_contribute(operation) || operation == Operation::kExchange);
  }
};
inline constexpr std::size_t kBlockHeaderBytes = 20;
static_assert(kMaxBlocksPerRound <= std::size_t{UINT16_MAX} + 1, "BlockHeader::block names each");
static_assert(kMaxTrees <= std::size_t{UINT8_MAX} + 1, "BlockHeader::tree names each");
static_assert(kMaxRanks <= UINT16_MAX, "BlockHeader::contributors counts all");
/// See BlockHeader::contributors. The parity of the types is in the low byte.
inline constexpr std::uint16_t kParityTypesBit = 0x100;

/// Encode a time in one byte. The code is the smallest that stands for at least this time, so the
/// decoded time is never too short, and at most a sixteenth too long. 0 stands for no time. Times
/// beyond kMaxPatience become kMaxPatience.
std::uint8_t patience_code(Duration patience);
Duration patience_of(std::uint8_t code);
inline constexpr Duration kPatienceUnit = Duration::us(64);
inline constexpr Duration kMaxPatience = kPatienceUnit * (std::int64_t{31} << 15);

/// What the sender tells the receiver of the packet. Packets to a group have none.
struct HopFeedback {
  /// Blocks from this sender to this receiver in this job, including those of this packet and
  /// repeated ones, modulo 2^32.
  std::uint32_t sent_blocks = 0;
  // Blocks that could be sent now; larger numbers are cut to 65535.
  std::uint16_t waiting_blocks = 0;
  std::uint16_t round_trip = 0;  // the sender's measurement, in kRoundTripUnit; 0: none yet
};
inline constexpr std::size_t kHopBytes = 8;
inline constexpr Duration kRoundTripUnit = Duration::us(16);
/// Encodes a round trip. It is the latest sample, because the receiver also wants the minimum.
std::uint16_t round_trip_code(Duration round_trip);

/// The bytes of a block packet to one node besides its payload and its extension.
inline constexpr std::size_t kBlockOverheadBytes =
    kEnvelopeBytes + kBlockHeaderBytes + kHopBytes + 8;
static_assert(kBlockOverheadBytes <= kMaxHeaderBytes);

struct BlockPacket {
  const Envelope* envelope = nullptr;
  BlockHeader header;
  HopFeedback hop;  // zeros if has_hop is false
  bool has_hop = false;
  Extension extension;
  std::span<const std::byte> payload;
};

/// The group that a packet names. It is read before the packet is verified, because key and tag
/// depend on it, so use it only to find them.
struct GroupHint {
  std::uint16_t epoch = 0;
  std::uint8_t tree = 0;
};
/// nullopt if the packet is too short.
std::optional<GroupHint> read_group_hint(std::span<const std::byte> packet);

/// Reads a push, a result or their parity, and checks everything after the envelope that can be
/// checked without its round. `packet` is without tag; see open(). kNone: every field of `out` is
/// set; it refers to `envelope` and `packet`. Use one `out` for many packets, because initialising
/// it takes as long as reading one.
[[nodiscard]] ParseError read_block(const Envelope& envelope, std::span<const std::byte> packet,
                                    BlockPacket& out);

/// Whether the scale at the begin of an int8 block is finite and not negative, as in every valid
/// block. read_block() checks only the first block of a packet.
bool has_sound_scale(const BlockHeader& h, std::span<const std::byte> payload);

/// Writes everything before the payload, without a hop extension if `hop` is null. Also sets the
/// flags and the length that belong to `hop` and `extension`. Returns the length of what it wrote:
/// the payload begins there, and the tag follows the payload.
std::size_t write_block(std::span<std::byte> out, const Envelope& envelope,
                        const BlockHeader& header, const HopFeedback* hop,
                        const ExtensionFields& extension = {});

/// Addresses a block at a relay to the node with index `next` of its route. Only number and tag
/// change in addition, and seal() writes these. `envelope` is the packet's.
void set_route_next(std::span<std::byte> packet, const Envelope& envelope, std::uint8_t next);

}  // namespace gradplane::wire
