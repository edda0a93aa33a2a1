// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The byte of a push's header that says for how long its sender still gathers.
#include <vector>

#include "dataplane/wire/block.h"
#include "dataplane/wire/seal.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::wire;

namespace {

constexpr std::size_t kPayloadBytes = 24;
constexpr std::size_t kPatienceAt = 29;
constexpr std::uint8_t kPatience = 0x42;

/// Returns how a receiver parses a block with kPatience. The header goes to `header`.
ParseError read_patient(PacketType type, std::uint16_t bucket, BlockHeader& header) {
  const BlockHeader said = {.bucket = bucket,
                            .round_elements = 100,
                            .contributors = 2,
                            .element_type = ElementType::kFloat32,
                            .patience = kPatience};
  std::vector<std::byte> bytes(kMaxDatagramBytes);
  bytes.resize(write_block(bytes, {.type = type}, said, nullptr) + kPayloadBytes);
  REQUIRE(bytes[kPatienceAt] == std::byte{kPatience});
  std::vector<std::byte> datagram = bytes;
  datagram.resize(bytes.size() + kTagBytes);
  Envelope envelope;
  REQUIRE(read_envelope(datagram, envelope) == ParseError::kNone);
  BlockPacket packet;
  const ParseError error = read_block(envelope, bytes, packet);
  header = packet.header;
  return error;
}

}  // namespace

TEST_CASE("a push of a bucket says how long its sender gathers, and no other block does") {
  BlockHeader header;
  CHECK(read_patient(PacketType::kPush, 7, header) == ParseError::kNone);
  CHECK(header.patience == kPatience);
  CHECK(read_patient(PacketType::kPush, 0, header) == ParseError::kBadField);
  CHECK(read_patient(PacketType::kResult, 7, header) == ParseError::kBadField);
}

TEST_CASE("a patience in one byte is never shorter than it was, and hardly longer") {
  CHECK(patience_code({}) == 0);
  CHECK(patience_of(0) == Duration{});
  CHECK(patience_code(Duration::ns(1)) == 1);
  CHECK(patience_code(Duration::max()) == 255);
  CHECK(patience_of(255) == kMaxPatience);
  for (unsigned code = 1; code < 256; ++code) {
    const Duration time = patience_of(static_cast<std::uint8_t>(code));
    INFO("code " << code);
    CHECK(patience_code(time) == code);
    if (code == 255) continue;
    const Duration next = patience_of(static_cast<std::uint8_t>(code + 1));
    CHECK(patience_code(time + Duration::ns(1)) == code + 1);
    CHECK((next - time) * 16 <= time);
  }
}
