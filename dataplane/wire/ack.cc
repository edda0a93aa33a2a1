// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/wire/ack.h"

#include "dataplane/base/assert.h"
#include "dataplane/base/bytes.h"

namespace gradplane::wire5 {
namespace {

constexpr std::size_t kEpochAt = 20;  // in grants too
constexpr std::size_t kTreeAt = 22;
constexpr std::size_t kSpareAt = 23;
constexpr std::size_t kRoundAt = 24;
constexpr std::size_t kFirstWordAt = 28;
constexpr std::size_t kWordCountAt = 30;
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

std::optional<AckPacket> read_ack(const Envelope& envelope, std::span<const std::byte> packet,
                                  ParseError& error) {
  error = ParseError::kBadLength;
  if (packet.size() < kAckEnd) return std::nullopt;
  const std::byte* at = packet.data();
  AckPacket out;
  out.header = {.epoch = load<std::uint16_t>(at + kEpochAt),
                .tree = load<std::uint8_t>(at + kTreeAt),
                .round = load<std::uint32_t>(at + kRoundAt),
                .first_word = load<std::uint16_t>(at + kFirstWordAt)};
  out.body = {.echo_us = load<std::uint32_t>(at + kEchoAt),
              .ack_delay_us = load<std::uint32_t>(at + kAckDelayAt),
              .unscheduled_blocks = load<std::uint32_t>(at + kUnscheduledAt),
              .total_blocks = load<std::uint32_t>(at + kTotalAt),
              .marked_packets = load<std::uint32_t>(at + kMarkedAt),
              .oldest_round = load<std::uint32_t>(at + kOldestRoundAt)};
  const std::size_t words = load<std::uint16_t>(at + kWordCountAt);
  error = ParseError::kBadField;
  if (load<std::uint8_t>(at + kSpareAt) != 0) return std::nullopt;
  if (words > kMaxAckWords || out.header.first_word > kMaxAckWords - words) return std::nullopt;
  const std::span<const std::byte> rest = packet.subspan(kAckEnd);
  const auto extension = read_extension(envelope, rest, error);
  if (!extension) return std::nullopt;
  out.extension = *extension;
  const auto bitmap = rest.subspan(envelope.extension_words * kExtensionWordBytes);
  if (bitmap.size() != words * sizeof(std::uint64_t)) {
    error = ParseError::kBadLength;
    return std::nullopt;
  }
  out.words = Numbers<std::uint64_t>(bitmap);
  return out;
}

std::size_t write_ack(std::span<std::byte> out, Envelope envelope, const AckHeader& header,
                      const AckBody& body, std::span<const std::uint64_t> words,
                      const ExtensionFields& extension) {
  GP_ASSERT(extension.coverage.empty());
  envelope.flags = static_cast<std::uint8_t>(envelope.flags | extension.flags());
  envelope.extension_words = extension.words();
  const std::size_t words_at = kAckEnd + envelope.extension_words * kExtensionWordBytes;
  const std::size_t size = words_at + words.size() * sizeof(std::uint64_t) + kTagBytes;
  GP_ASSERT(out.size() >= size);
  write_envelope(out, envelope);
  std::byte* at = out.data();
  store(at + kEpochAt, header.epoch);
  store(at + kTreeAt, header.tree);
  store(at + kSpareAt, std::uint8_t{0});
  store(at + kRoundAt, header.round);
  store(at + kFirstWordAt, header.first_word);
  store(at + kWordCountAt, static_cast<std::uint16_t>(words.size()));
  store(at + kEchoAt, body.echo_us);
  store(at + kAckDelayAt, body.ack_delay_us);
  store(at + kUnscheduledAt, body.unscheduled_blocks);
  store(at + kTotalAt, body.total_blocks);
  store(at + kMarkedAt, body.marked_packets);
  store(at + kOldestRoundAt, body.oldest_round);
  write_extension(out.subspan(kAckEnd), extension);
  for (std::size_t i = 0; i < words.size(); ++i) {
    store(at + words_at + i * sizeof(std::uint64_t), words[i]);
  }
  return size;
}

std::optional<Grant> read_grant(std::span<const std::byte> packet, ParseError& error) {
  error = ParseError::kBadLength;
  if (packet.size() != kGrantEnd) return std::nullopt;
  const std::byte* at = packet.data();
  error = ParseError::kBadField;
  if (load<std::uint16_t>(at + kGrantSpareAt) != 0) return std::nullopt;
  return Grant{.epoch = load<std::uint16_t>(at + kEpochAt),
               .total_blocks = load<std::uint32_t>(at + kGrantTotalAt),
               .unscheduled_blocks = load<std::uint32_t>(at + kGrantUnscheduledAt)};
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

}  // namespace gradplane::wire5
