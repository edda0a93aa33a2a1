// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/wire/envelope.h"

#include "dataplane/base/assert.h"
#include "dataplane/base/bytes.h"
#include "dataplane/wire/extension.h"
#include "dataplane/wire/seal.h"

namespace gradplane::wire {
namespace {

constexpr std::size_t kMagicAt = 0;
constexpr std::size_t kVersionAt = 1;
constexpr std::size_t kTypeAt = 2;
constexpr std::size_t kJobAt = 4;
constexpr std::size_t kSenderAt = 8;
constexpr std::size_t kParityRowsAt = 11;
constexpr std::size_t kTimestampAt = 16;
static_assert(kNumberAt == 12 && kTimestampAt + sizeof(std::uint32_t) == kEnvelopeBytes);

constexpr std::uint8_t kFirstType = static_cast<std::uint8_t>(PacketType::kPush);
constexpr std::uint8_t kLastType = static_cast<std::uint8_t>(PacketType::kResultParity);

constexpr std::uint8_t flags_of(PacketType type) {
  if (is_block(type)) return 0xff;
  if (is_parity(type)) return kFlagHop | kFlagLast | kFlagBounded;
  if (type == PacketType::kSounding) return kFlagAnswer | kFlagSlow;
  if (!is_ack(type)) return 0;
  return kFlagSlow | kFlagSound | kFlagAllowed | kFlagEnded | kFlagComplete | kFlagClosed |
         kFlagRoute;
}

/// Only blocks and parity may state a number of rows.
bool may_have_rows(const Envelope& e) {
  if (is_parity(e.type)) return e.parity_rows > 0 && e.parity_rows <= kMaxParityRows;
  return e.parity_rows == 0 || (is_block(e.type) && e.parity_rows <= kMaxParityRows);
}

}  // namespace

ParseError read_envelope(std::span<const std::byte> datagram, Envelope& e) {
  if (datagram.size() < kEnvelopeBytes) return ParseError::kTooShort;
  const std::byte* at = datagram.data();
  if (load<std::uint8_t>(at + kMagicAt) != kMagic) return ParseError::kBadMagic;
  if (load<std::uint8_t>(at + kVersionAt) != kVersion) return ParseError::kBadVersion;
  const auto type = load<std::uint8_t>(at + kTypeAt);
  if (type < kFirstType || type > kLastType) return ParseError::kBadType;
  e.type = static_cast<PacketType>(type);
  if (datagram.size() < kEnvelopeBytes + tag_bytes(e.type)) return ParseError::kTooShort;
  e.flags = load<std::uint8_t>(at + kFlagsAt);
  if ((e.flags & ~flags_of(e.type)) != 0) return ParseError::kBadField;
  e.extension_words = load<std::uint8_t>(at + kExtensionWordsAt);
  const bool may_have_extension =
      (e.flags & kFlagRoute) != 0 || (is_block(e.type) && (e.flags & kFlagCoverage) != 0);
  if (may_have_extension != (e.extension_words != 0)) return ParseError::kBadField;
  if (e.extension_words > kMaxExtensionWords) return ParseError::kBadField;
  e.parity_rows = load<std::uint8_t>(at + kParityRowsAt);
  if (!may_have_rows(e)) return ParseError::kBadField;
  e.job = load<std::uint32_t>(at + kJobAt);
  e.sender = load<std::uint16_t>(at + kSenderAt);
  e.number = load<std::uint32_t>(at + kNumberAt);
  e.timestamp_us = load<std::uint32_t>(at + kTimestampAt);
  return ParseError::kNone;
}

void write_envelope(std::span<std::byte> out, const Envelope& e) {
  GP_ASSERT(out.size() >= kEnvelopeBytes);
  std::byte* at = out.data();
  store(at + kMagicAt, kMagic);
  store(at + kVersionAt, kVersion);
  store(at + kTypeAt, static_cast<std::uint8_t>(e.type));
  store(at + kFlagsAt, e.flags);
  store(at + kJobAt, e.job);
  store(at + kSenderAt, e.sender);
  store(at + kExtensionWordsAt, e.extension_words);
  store(at + kParityRowsAt, e.parity_rows);
  store(at + kNumberAt, e.number);
  store(at + kTimestampAt, e.timestamp_us);
}

}  // namespace gradplane::wire
