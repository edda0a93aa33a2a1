// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/wire/ack.h"

#include "dataplane/base/assert.h"
#include "dataplane/base/bytes.h"

namespace gradplane::wire {
namespace {

constexpr std::size_t kEpochAt = 20;  // also in grants
constexpr std::size_t kTreeAt = 22;
constexpr std::size_t kPathAt = 23;
constexpr std::size_t kRoundAt = 24;
constexpr std::size_t kFirstWordAt = 28;
constexpr std::size_t kWordCountAt = 29;
constexpr std::size_t kLossAt = 30;
constexpr std::size_t kEchoAt = 32;
constexpr std::size_t kAckDelayAt = 36;
constexpr std::size_t kUnscheduledAt = 40;
constexpr std::size_t kTotalAt = 44;
constexpr std::size_t kMarkedAt = 48;
constexpr std::size_t kOldestRoundAt = 52;
constexpr std::size_t kAckEnd = kEnvelopeBytes + kAckFixedBytes;
static_assert(kEpochAt == kEnvelopeBytes && kOldestRoundAt + sizeof(std::uint32_t) == kAckEnd);

constexpr std::size_t kGrantSpareAt = 22;
constexpr std::size_t kGrantTotalAt = 24;
constexpr std::size_t kGrantUnscheduledAt = 28;
constexpr std::size_t kGrantEnd = 32;
static_assert(kGrantEnd + kTagBytes == kGrantBytes);

}  // namespace

ParseError read_ack(const Envelope& envelope, std::span<const std::byte> packet, AckPacket& out) {
  if (packet.size() < kAckEnd) return ParseError::kBadLength;
  const std::byte* at = packet.data();
  out.header.path = load<std::uint8_t>(at + kPathAt);
  if (out.header.path >= kMaxPaths) return ParseError::kBadField;
  out.envelope = &envelope;
  out.header.epoch = load<std::uint16_t>(at + kEpochAt);
  out.header.tree = load<std::uint8_t>(at + kTreeAt);
  out.header.round = load<std::uint32_t>(at + kRoundAt);
  out.header.first_word = load<std::uint8_t>(at + kFirstWordAt);
  out.body.loss = load<std::uint16_t>(at + kLossAt);
  out.body.echo_us = load<std::uint32_t>(at + kEchoAt);
  out.body.ack_delay_us = load<std::uint32_t>(at + kAckDelayAt);
  out.body.unscheduled_blocks = load<std::uint32_t>(at + kUnscheduledAt);
  out.body.total_blocks = load<std::uint32_t>(at + kTotalAt);
  out.body.marked_packets = load<std::uint32_t>(at + kMarkedAt);
  out.body.oldest_round = load<std::uint32_t>(at + kOldestRoundAt);
  const std::size_t words = load<std::uint8_t>(at + kWordCountAt);
  if (words > kMaxAckWords || out.header.first_word > kMaxAckWords - words) {
    return ParseError::kBadField;
  }
  out.extension = {};
  std::span<const std::byte> bitmap = packet.subspan(kAckEnd);
  if (envelope.extension_words != 0) {
    const ParseError error = read_extension(envelope, bitmap, out.extension);
    if (error != ParseError::kNone) return error;
    bitmap = bitmap.subspan(envelope.extension_words * kExtensionWordBytes);
  }
  if (bitmap.size() != words * sizeof(std::uint64_t)) return ParseError::kBadLength;
  out.words = Numbers<std::uint64_t>(bitmap);
  return ParseError::kNone;
}

std::size_t write_ack(std::span<std::byte> out, const Envelope& envelope, const AckHeader& header,
                      const AckBody& body, std::span<const std::uint64_t> words,
                      const ExtensionFields& extension) {
  GP_ASSERT(extension.coverage.empty());
  GP_ASSERT(out.size() >= kAckEnd);
  write_envelope(out, envelope);
  std::byte* at = out.data();
  store(at + kEpochAt, header.epoch);
  store(at + kTreeAt, header.tree);
  store(at + kPathAt, header.path);
  store(at + kRoundAt, header.round);
  store(at + kFirstWordAt, static_cast<std::uint8_t>(header.first_word));
  store(at + kWordCountAt, static_cast<std::uint8_t>(words.size()));
  store(at + kLossAt, body.loss);
  store(at + kEchoAt, body.echo_us);
  store(at + kAckDelayAt, body.ack_delay_us);
  store(at + kUnscheduledAt, body.unscheduled_blocks);
  store(at + kTotalAt, body.total_blocks);
  store(at + kMarkedAt, body.marked_packets);
  store(at + kOldestRoundAt, body.oldest_round);
  std::size_t size = kAckEnd;
  if (!extension.empty()) size += write_extension(out, size, extension);
  GP_ASSERT(out.size() >= size + words.size() * sizeof(std::uint64_t) + kTagBytes);
  for (const std::uint64_t word : words) {
    store(at + size, word);
    size += sizeof(word);
  }
  return size + kTagBytes;
}

ParseError read_grant(std::span<const std::byte> packet, Grant& out) {
  if (packet.size() != kGrantEnd) return ParseError::kBadLength;
  const std::byte* at = packet.data();
  if (load<std::uint16_t>(at + kGrantSpareAt) != 0) return ParseError::kBadField;
  out.epoch = load<std::uint16_t>(at + kEpochAt);
  out.total_blocks = load<std::uint32_t>(at + kGrantTotalAt);
  out.unscheduled_blocks = load<std::uint32_t>(at + kGrantUnscheduledAt);
  return ParseError::kNone;
}

std::size_t write_grant(std::span<std::byte> out, const Envelope& envelope, const Grant& grant) {
  GP_ASSERT(out.size() >= kGrantBytes);
  write_envelope(out, envelope);
  std::byte* at = out.data();
  store(at + kEpochAt, grant.epoch);
  store(at + kGrantSpareAt, std::uint16_t{0});
  store(at + kGrantTotalAt, grant.total_blocks);
  store(at + kGrantUnscheduledAt, grant.unscheduled_blocks);
  return kGrantBytes;
}

}  // namespace gradplane::wire
