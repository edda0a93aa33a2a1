// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The readers of packets get arbitrary bytes. What they accept must be consistent, and writing it
// again must give the same bytes.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/base/assert.h"
#include "dataplane/wire/ack.h"
#include "dataplane/wire/block.h"
#include "dataplane/wire/envelope.h"
#include "dataplane/wire/seal.h"
#include "dataplane/wire/sounding.h"

using namespace gradplane;
using namespace gradplane::wire;

namespace {

constexpr std::size_t kVersionOffset = 1;

template <typename T>
std::vector<T> copy_of(const Numbers<T>& numbers) {
  std::vector<T> out;
  for (std::size_t i = 0; i < numbers.size(); ++i) out.push_back(numbers[i]);
  return out;
}

void check_same(std::span<const std::byte> expected, std::span<const std::byte> written) {
  GP_ASSERT(std::equal(expected.begin(), expected.end(), written.begin(), written.end()));
}

void check_block(const Envelope& envelope, std::span<const std::byte> packet) {
  BlockPacket block;
  if (read_block(envelope, packet, block) != ParseError::kNone) return;
  const auto coverage = copy_of(block.extension.coverage);
  const auto route = copy_of(block.extension.route);
  std::vector<std::byte> out(packet.size());
  const std::size_t payload_at =
      write_block(out, envelope, block.header, block.has_hop ? &block.hop : nullptr,
                  {.coverage = coverage, .route = route, .route_next = block.extension.route_next});
  GP_ASSERT(payload_at + block.payload.size() == packet.size());
  check_same(packet.first(payload_at), std::span(out).first(payload_at));
}

void check_ack(const Envelope& envelope, std::span<const std::byte> packet) {
  AckPacket ack;
  if (read_ack(envelope, packet, ack) != ParseError::kNone) return;
  const auto route = copy_of(ack.extension.route);
  std::vector<std::byte> out(packet.size() + kTagBytes);
  const std::size_t size =
      write_ack(out, envelope, ack.header, ack.body, copy_of(ack.words),
                {.coverage = {}, .route = route, .route_next = ack.extension.route_next});
  GP_ASSERT(size == out.size());
  check_same(packet, std::span(out).first(packet.size()));
}

void check_grant(const Envelope& envelope, std::span<const std::byte> packet) {
  Grant grant;
  if (read_grant(packet, grant) != ParseError::kNone) return;
  std::vector<std::byte> out(kGrantBytes);
  GP_ASSERT(write_grant(out, envelope, grant) == packet.size() + kTagBytes);
  check_same(packet, std::span(out).first(packet.size()));
}

/// Padding is not read, so it may have any bytes. Zeros are written.
void check_sounding(const Envelope& envelope, std::span<const std::byte> packet) {
  Sounding sounding;
  if (read_sounding(envelope, packet, sounding) != ParseError::kNone) return;
  std::vector<std::byte> out(packet.size() + kTagBytes);
  GP_ASSERT(write_sounding(out, envelope, sounding) == out.size());
  constexpr std::size_t kFields = kEnvelopeBytes + kSoundingFixedBytes;
  check_same(packet.first(kFields), std::span(out).first(kFields));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy, so that the sanitizer sees reads past its end.
  std::vector<std::uint8_t> copy(data, data + size);
  // Sets the version, whatever the input says: a corpus is used for longer than a version, and
  // packets of a wrong version are dropped at once.
  if (size > kVersionOffset) {
    copy[0] = kMagic;
    copy[kVersionOffset] = kVersion;
  }
  const auto bytes = std::as_bytes(std::span(copy));
  Envelope envelope;
  if (read_envelope(bytes, envelope) != ParseError::kNone) return 0;
  std::vector<std::byte> front(kEnvelopeBytes);
  write_envelope(front, envelope);
  check_same(bytes.first(kEnvelopeBytes), front);
  if (envelope.type == PacketType::kControl) return 0;

  static const Gmac key(Key{});
  (void)open(bytes, key, {envelope.sender, Receiver::node(0), envelope.number});
  const std::span<const std::byte> packet = open_unsealed(bytes);
  if (is_block(envelope.type) || is_parity(envelope.type)) {
    check_block(envelope, packet);
  } else if (is_ack(envelope.type)) {
    check_ack(envelope, packet);
  } else if (envelope.type == PacketType::kSounding) {
    check_sounding(envelope, packet);
  } else {
    check_grant(envelope, packet);
  }
  return 0;
}
