// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/wire/block.h"

#include <algorithm>
#include <cstring>

#include "dataplane/base/assert.h"
#include "dataplane/base/bytes.h"
#include "dataplane/wire/seal.h"

namespace gradplane::wire {
namespace {

constexpr std::size_t kEpochAt = 20;
constexpr std::size_t kSubjectAt = 22;  // depends on the operation; see read_subject()
constexpr std::size_t kRoundAt = 24;
constexpr std::size_t kTreeAt = 28;
constexpr std::size_t kPatienceAt = 29;
constexpr std::size_t kBlockAt = 30;
constexpr std::size_t kRoundElementsAt = 32;
constexpr std::size_t kContributorsAt = 36;
// The high half of the byte; the low half is the wire type.
constexpr std::size_t kOperationAt = 38;
// The low half of the byte; the high half is the reduction.
constexpr std::size_t kElementTypeAt = 39;
constexpr std::size_t kHopAt = 40;
constexpr std::size_t kSentAt = 40;
constexpr std::size_t kWaitingAt = 44;
constexpr std::size_t kRoundTripAt = 46;
static_assert(kSentAt == kHopAt && kRoundTripAt + 2 == kHopAt + kHopBytes);
static_assert(kEpochAt == kEnvelopeBytes && kHopAt == kEnvelopeBytes + kBlockHeaderBytes);
static_assert(kBlockOverheadBytes == kHopAt + kHopBytes + kTagBytes);
static_assert(kHopAt + kHopBytes <= 48, "what a block costs besides its tag");

constexpr int kHalfByte = 4;
constexpr std::uint8_t kLowHalf = 0x0f;

bool read_types(std::span<const std::byte> packet, BlockHeader& h) {
  const auto kinds = load<std::uint8_t>(packet.data() + kOperationAt);
  const auto operation = static_cast<std::uint8_t>(kinds >> kHalfByte);
  const auto wire_type = static_cast<std::uint8_t>(kinds & kLowHalf);
  const auto elements = load<std::uint8_t>(packet.data() + kElementTypeAt);
  const auto reduction = static_cast<std::uint8_t>(elements >> kHalfByte);
  const auto element_type = static_cast<std::uint8_t>(elements & kLowHalf);
  if (!is_operation(operation) || !is_wire_type(wire_type) || !is_element_type(element_type) ||
      !is_reduction(reduction)) {
    return false;
  }
  h.operation = static_cast<Operation>(operation);
  h.wire_type = static_cast<WireType>(wire_type);
  h.element_type = static_cast<ElementType>(element_type);
  h.reduction = static_cast<Reduction>(reduction);
  return true;
}

/// In an exchange, the low bits of the subject are the bucket, and those above are the selection.
constexpr int kBucketBits = 13;
constexpr std::uint16_t kBucketMask = (1U << kBucketBits) - 1;
static_assert(kMaxBuckets <= kBucketMask && kMaxSelections << kBucketBits <= 1U << 16);

/// Reads the subject: the bucket of an all_reduce, the source rank of a broadcast, bucket and
/// selection of an exchange. False if it is not valid.
bool read_subject(std::span<const std::byte> packet, BlockHeader& h) {
  const auto subject = load<std::uint16_t>(packet.data() + kSubjectAt);
  if (h.operation == Operation::kExchange) {
    h.bucket = subject & kBucketMask;
    h.source = subject >> kBucketBits;
    return h.bucket <= kMaxBuckets;
  }
  h.bucket = h.operation == Operation::kAllReduce ? subject : std::uint16_t{0};
  h.source = h.operation == Operation::kBroadcast ? subject : std::uint16_t{0};
  return h.bucket <= kMaxBuckets && h.source < kMaxRanks && h.bucket + h.source == subject;
}

std::uint16_t subject_of(const BlockHeader& h) {
  if (h.operation == Operation::kBroadcast) return h.source;
  if (h.operation != Operation::kExchange) return h.bucket;
  return static_cast<std::uint16_t>(h.source << kBucketBits | h.bucket);
}

/// A patience code has an exponent in its high half, and in its low half a mantissa whose first bit
/// is implicit.
constexpr std::uint8_t kMantissaBit = 1 << kHalfByte;

/// Only a push of a bucket may state a patience.
bool may_be_patient(const Envelope& envelope, const BlockHeader& h) {
  return h.patience == 0 || (block_type(envelope.type) == PacketType::kPush && h.bucket != 0);
}

/// Only all_reduce and reduce_scatter may have another reduction than a sum. It is exact, so it has
/// no bucket.
bool has_sound_reduction(const BlockHeader& h) {
  const bool reduces =
      h.operation == Operation::kAllReduce || h.operation == Operation::kReduceScatter;
  return h.reduction == Reduction::kSum || (reduces && h.bucket == 0);
}

/// Only fp32 sums of a bucket may have a narrower wire type.
bool may_be_narrowed(const BlockHeader& h) {
  return h.element_type == ElementType::kFloat32 && h.operation == Operation::kAllReduce &&
         h.bucket != 0;
}

/// Whether this many bytes are whole elements in the wire type.
bool are_whole(const BlockHeader& h, std::size_t bytes) {
  switch (h.wire_type) {
    case WireType::kElements:
      break;
    case WireType::kBfloat16:
    case WireType::kFloat16:
      return bytes % 2 == 0;
    case WireType::kInt8:
      return bytes > kScaleBytes;
  }
  // The size of an element is a power of two; see element_bytes(). A division would take a third of
  // read_block()'s time.
  return (bytes & (element_bytes(h.element_type) - 1)) == 0;
}

/// Parity is over blocks that lack nobody, and goes to one receiver.
bool is_sound_parity(const Envelope& envelope, const BlockHeader& h) {
  const bool has_types = (h.contributors & ~unsigned{UINT8_MAX}) == kParityTypesBit;
  return h.block < envelope.parity_rows && h.operation == Operation::kAllReduce &&
         (h.wire_type == WireType::kElements || has_types) && (envelope.flags & kFlagHop) != 0;
}

/// Only a partial block may lack all contributions.
bool may_lack_all(const Envelope& envelope) {
  return (envelope.flags & kFlagPartial) != 0;
}

}  // namespace

bool has_sound_scale(const BlockHeader& h, std::span<const std::byte> payload) {
  if (h.wire_type != WireType::kInt8) return true;
  constexpr std::uint32_t kInfinity = 0x7f800000;
  std::uint32_t scale = 0;
  std::memcpy(&scale, payload.data(), sizeof scale);
  return scale < kInfinity;
}

std::uint8_t patience_code(Duration patience) {
  if (patience <= Duration{}) return 0;
  const std::int64_t unit_ns = kPatienceUnit.count_ns();
  std::int64_t units = (std::min(patience, kMaxPatience).count_ns() + unit_ns - 1) / unit_ns;
  units = std::max<std::int64_t>(units, kMantissaBit + 1);
  unsigned exponent = 0;
  for (; units >= 2 * kMantissaBit; ++exponent) units = (units + 1) / 2;
  return static_cast<std::uint8_t>(exponent << kHalfByte | (units - kMantissaBit));
}

Duration patience_of(std::uint8_t code) {
  if (code == 0) return {};
  const std::int64_t units = kMantissaBit + (code & kLowHalf);
  return kPatienceUnit * (units << (code >> kHalfByte));
}

std::uint16_t round_trip_code(Duration round_trip) {
  if (round_trip <= Duration{}) return 0;
  const std::int64_t units = round_trip.count_ns() / kRoundTripUnit.count_ns();
  return static_cast<std::uint16_t>(std::clamp<std::int64_t>(units, 1, UINT16_MAX));
}

std::optional<GroupHint> read_group_hint(std::span<const std::byte> packet) {
  if (packet.size() < kHopAt) return std::nullopt;
  return GroupHint{.epoch = load<std::uint16_t>(packet.data() + kEpochAt),
                   .tree = load<std::uint8_t>(packet.data() + kTreeAt)};
}

ParseError read_block(const Envelope& envelope, std::span<const std::byte> packet,
                      BlockPacket& out) {
  out.has_hop = (envelope.flags & kFlagHop) != 0;
  const std::size_t header_bytes = out.has_hop ? kHopAt + kHopBytes : kHopAt;
  if (packet.size() < header_bytes) return ParseError::kBadLength;
  const std::byte* at = packet.data();
  BlockHeader& h = out.header;
  if (!read_types(packet, h)) return ParseError::kBadField;
  out.envelope = &envelope;
  h.epoch = load<std::uint16_t>(at + kEpochAt);
  h.round = load<std::uint32_t>(at + kRoundAt);
  h.tree = load<std::uint8_t>(at + kTreeAt);
  h.block = load<std::uint16_t>(at + kBlockAt);
  h.round_elements = load<std::uint32_t>(at + kRoundElementsAt);
  h.contributors = load<std::uint16_t>(at + kContributorsAt);
  h.patience = load<std::uint8_t>(at + kPatienceAt);
  out.hop = {};
  if (out.has_hop) {
    out.hop.sent_blocks = load<std::uint32_t>(at + kSentAt);
    out.hop.waiting_blocks = load<std::uint16_t>(at + kWaitingAt);
    out.hop.round_trip = load<std::uint16_t>(at + kRoundTripAt);
  }
  if (!read_subject(packet, h) || h.round_elements == 0) return ParseError::kBadField;
  if (!has_sound_reduction(h)) return ParseError::kBadField;
  if (!may_be_patient(envelope, h)) return ParseError::kBadField;
  if (h.wire_type != WireType::kElements && !may_be_narrowed(h)) return ParseError::kBadField;
  if (is_parity(envelope.type) && !is_sound_parity(envelope, h)) return ParseError::kBadField;
  if (h.contributors == 0 && !may_lack_all(envelope)) return ParseError::kBadField;
  out.extension = {};
  out.payload = packet.subspan(header_bytes);
  if (envelope.extension_words != 0) {
    const ParseError error = read_extension(envelope, out.payload, out.extension);
    if (error != ParseError::kNone) return error;
    out.payload = out.payload.subspan(envelope.extension_words * kExtensionWordBytes);
  }
  const std::size_t bytes = out.payload.size();
  if ((bytes == 0) != h.is_empty() || bytes > kMaxBlockBytes) return ParseError::kBadLength;
  // In parity, the wire type only says that there are some, and blocks of several may be in it.
  if (is_parity(envelope.type) && h.wire_type != WireType::kElements) return ParseError::kNone;
  if (!are_whole(h, bytes)) return ParseError::kBadLength;
  if (!has_sound_scale(h, out.payload)) return ParseError::kBadField;
  return ParseError::kNone;
}

std::size_t write_block(std::span<std::byte> out, const Envelope& envelope, const BlockHeader& h,
                        const HopFeedback* hop, const ExtensionFields& extension) {
  std::size_t size = hop != nullptr ? kHopAt + kHopBytes : kHopAt;
  GP_ASSERT(out.size() >= size);
  write_envelope(out, envelope);
  std::byte* at = out.data();
  store(at + kEpochAt, h.epoch);
  store(at + kSubjectAt, subject_of(h));
  store(at + kRoundAt, h.round);
  store(at + kTreeAt, h.tree);
  store(at + kPatienceAt, h.patience);
  store(at + kBlockAt, h.block);
  store(at + kRoundElementsAt, h.round_elements);
  store(at + kContributorsAt, h.contributors);
  store(at + kOperationAt,
        static_cast<std::uint8_t>(static_cast<std::uint8_t>(h.operation) << kHalfByte |
                                  static_cast<std::uint8_t>(h.wire_type)));
  store(at + kElementTypeAt,
        static_cast<std::uint8_t>(static_cast<std::uint8_t>(h.reduction) << kHalfByte |
                                  static_cast<std::uint8_t>(h.element_type)));
  if (hop != nullptr) {
    store(at + kFlagsAt, static_cast<std::uint8_t>(envelope.flags | kFlagHop));
    store(at + kSentAt, hop->sent_blocks);
    store(at + kWaitingAt, hop->waiting_blocks);
    store(at + kRoundTripAt, hop->round_trip);
  }
  if (!extension.empty()) size += write_extension(out, size, extension);
  return size;
}

void set_route_next(std::span<std::byte> packet, const Envelope& envelope, std::uint8_t next) {
  GP_ASSERT(is_routed(envelope));
  const std::size_t extension_at = (envelope.flags & kFlagHop) != 0 ? kHopAt + kHopBytes : kHopAt;
  store(packet.data() + extension_at + kRouteNextAt, next);
}

}  // namespace gradplane::wire
