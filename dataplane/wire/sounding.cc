// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/wire/sounding.h"

#include <cstring>

#include "dataplane/base/assert.h"
#include "dataplane/base/bytes.h"

namespace gradplane::wire {
namespace {

constexpr std::size_t kEpochAt = 20;
constexpr std::size_t kRoundTripAt = 22;
constexpr std::size_t kSoundingNumberAt = 24;
constexpr std::size_t kEchoAt = 28;
constexpr std::size_t kPaddingAt = 32;
static_assert(kEpochAt == kEnvelopeBytes && kPaddingAt == kEnvelopeBytes + kSoundingFixedBytes);

}  // namespace

ParseError read_sounding(const Envelope& envelope, std::span<const std::byte> packet,
                         Sounding& out) {
  if (packet.size() < kPaddingAt) return ParseError::kBadLength;
  const std::byte* at = packet.data();
  out.is_answer = (envelope.flags & kFlagAnswer) != 0;
  out.epoch = load<std::uint16_t>(at + kEpochAt);
  out.round_trip = load<std::uint16_t>(at + kRoundTripAt);
  out.number = load<std::uint32_t>(at + kSoundingNumberAt);
  out.echo_us = load<std::uint32_t>(at + kEchoAt);
  const std::size_t padding = packet.size() - kPaddingAt;
  if (out.is_answer != (padding == 0)) return ParseError::kBadLength;
  if (padding > sounding_bytes(kMaxBlockBytes) - kSoundingAnswerBytes)
    return ParseError::kBadLength;
  const bool answers = out.echo_us != 0 || (envelope.flags & kFlagSlow) != 0;
  if (!out.is_answer && answers) return ParseError::kBadField;
  // Soundings are numbered from 1.
  if (out.number == 0) return ParseError::kBadField;
  return ParseError::kNone;
}

std::size_t write_sounding(std::span<std::byte> out, const Envelope& envelope, const Sounding& s) {
  const std::size_t size = s.is_answer ? kSoundingAnswerBytes : out.size();
  GP_ASSERT(out.size() >= size && size >= kSoundingAnswerBytes);
  write_envelope(out, envelope);
  std::byte* at = out.data();
  store(at + kEpochAt, s.epoch);
  store(at + kRoundTripAt, s.round_trip);
  store(at + kSoundingNumberAt, s.number);
  store(at + kEchoAt, s.echo_us);
  std::memset(at + kPaddingAt, 0, size - kTagBytes - kPaddingAt);
  return size;
}

}  // namespace gradplane::wire
