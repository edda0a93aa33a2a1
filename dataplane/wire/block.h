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

/// Describes the block and nothing else, so it is the same for every receiver. How many elements
/// the block has follows from the round's elements, the block's index and the job's block size.
struct BlockHeader {
  std::uint16_t epoch = 0;   // of the plan, modulo 2^16
  std::uint16_t bucket = 0;  // the bucket whose tensors it holds; 0: of none, so it is exact
                             // (all_reduce and exchange alone)
  std::uint32_t round = 0;
  std::uint8_t tree = 0;
  std::uint16_t block = 0;           // its index in the round; of parity, the number of its row
  std::uint32_t round_elements = 0;  // of the whole round
  std::uint16_t contributors = 0;    // the ranks whose contributions its bytes hold
  Operation operation = Operation::kAllReduce;
  std::uint16_t source = 0;  // broadcast: the rank whose bytes it holds; exchange: the selection
  WireType wire_type = WireType::kElements;
  ElementType element_type = ElementType::kFloat32;
  Reduction reduction = Reduction::kSum;  // all_reduce, reduce_scatter
  /// Pushes of a bucket alone: how long the sender may still gather blocks from its own children,
  /// as a code (patience_code); 0: it says nothing of that.
  std::uint8_t patience = 0;

  /// The sender has nothing of the block, which one rank alone contributes to, or sends its update
  /// to others. Such a packet has no payload.
  bool is_empty() const {
    return contributors == 0 && (!all_contribute(operation) || operation == Operation::kExchange);
  }
};
inline constexpr std::size_t kBlockHeaderBytes = 20;
static_assert(kMaxBlocksPerRound <= std::size_t{UINT16_MAX} + 1, "BlockHeader::block names each");
static_assert(kMaxTrees <= std::size_t{UINT8_MAX} + 1, "BlockHeader::tree names each");
static_assert(kMaxRanks <= UINT16_MAX, "BlockHeader::contributors counts all");

/// A time in one byte. The code is the smallest that stands for at least this time, so what it says
/// is never too short and at most a sixteenth too long. 0 stands for no time at all. Times beyond
/// kMaxPatience become kMaxPatience.
std::uint8_t patience_code(Duration patience);
Duration patience_of(std::uint8_t code);
inline constexpr Duration kPatienceUnit = Duration::us(64);
inline constexpr Duration kMaxPatience = kPatienceUnit * (std::int64_t{31} << 15);

/// What the sender tells the one node that it sends the block to. Packets to a group have none.
struct HopFeedback {
  /// Blocks from this sender to this receiver in this job since the plan began, with those of this
  /// packet and with repeated ones, modulo 2^32.
  std::uint32_t sent_blocks = 0;
  std::uint16_t waiting_blocks = 0;  // that could go now; at most this many are told
  std::uint16_t round_trip = 0;      // as the sender measures it, in kRoundTripUnit; 0: not yet
};
inline constexpr std::size_t kHopBytes = 8;
inline constexpr Duration kRoundTripUnit = Duration::us(16);
/// Of the latest sample: the receiver wants to know, too, how short the path can be.
std::uint16_t round_trip_code(Duration round_trip);

/// A block packet to one node has this many bytes besides its payload and its extension.
inline constexpr std::size_t kBlockOverheadBytes =
    kEnvelopeBytes + kBlockHeaderBytes + kHopBytes + 8;
static_assert(kBlockOverheadBytes <= kMaxHeaderBytes);

struct BlockPacket {
  const Envelope* envelope = nullptr;
  BlockHeader header;
  HopFeedback hop;  // 0 where has_hop is false
  bool has_hop = false;
  Extension extension;
  std::span<const std::byte> payload;
};

/// Which group a packet says that it is for. It is read before the packet is verified, because key
/// and tag depend on it: nothing but the search for them may follow from it.
struct GroupHint {
  std::uint16_t epoch = 0;
  std::uint8_t tree = 0;
};
/// nullopt: the packet is too short.
std::optional<GroupHint> read_group_hint(std::span<const std::byte> packet);

/// Checks everything behind the envelope that a push, a result or their parity says about itself.
/// `packet` has no tag any more; see open(). kNone: every field of `out` is set, and points to
/// `envelope` and `packet`. Use one `out` for many packets: to make it empty for each takes as long
/// as to read it.
[[nodiscard]] ParseError read_block(const Envelope& envelope, std::span<const std::byte> packet,
                                    BlockPacket& out);

/// The scale that an int8 block begins with is finite and not negative. No block that may go so has
/// another one. read_block() looks at that of a packet's first block.
bool has_sound_scale(const BlockHeader& h, std::span<const std::byte> payload);

/// Writes everything before the payload, without a hop extension where `hop` is null. The flags and
/// the length that belong to `hop` and `extension` are set here. Returns the bytes that it wrote:
/// the payload begins there, and the tag follows it.
std::size_t write_block(std::span<std::byte> out, const Envelope& envelope,
                        const BlockHeader& header, const HopFeedback* hop,
                        const ExtensionFields& extension = {});

/// Makes a block that has come to a relay one for the node `next` of its route. Nothing else of it
/// changes but the number and the tag, which seal() writes. `envelope` is the packet's.
void set_route_next(std::span<std::byte> packet, const Envelope& envelope, std::uint8_t next);

}  // namespace gradplane::wire
