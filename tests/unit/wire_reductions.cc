// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The half byte of a block's header that names its reduction.
#include <vector>

#include "dataplane/wire/block.h"
#include "dataplane/wire/seal.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::wire;

namespace {

constexpr std::size_t kPayloadBytes = 24;
constexpr std::size_t kTypesAt = 39;

/// Returns how a receiver parses a block with the header `said`.
ParseError read(const BlockHeader& said, BlockHeader& header) {
  std::vector<std::byte> bytes(kMaxDatagramBytes);
  bytes.resize(write_block(bytes, {.type = PacketType::kPush}, said, nullptr) + kPayloadBytes);
  std::vector<std::byte> datagram = bytes;
  datagram.resize(bytes.size() + kTagBytes);
  Envelope envelope;
  REQUIRE(read_envelope(datagram, envelope) == ParseError::kNone);
  BlockPacket packet;
  const ParseError error = read_block(envelope, bytes, packet);
  header = packet.header;
  return error;
}

BlockHeader block_of(Operation operation, Reduction reduction, std::uint16_t bucket = 0) {
  return {.bucket = bucket,
          .round_elements = 100,
          .contributors = 2,
          .operation = operation,
          .element_type = ElementType::kInt64,
          .reduction = reduction};
}

}  // namespace

TEST_CASE("a block says its reduction beside its type") {
  for (const Reduction reduction : kReductions) {
    CAPTURE(reduction_name(reduction));
    for (const Operation operation : {Operation::kAllReduce, Operation::kReduceScatter}) {
      BlockHeader header;
      REQUIRE(read(block_of(operation, reduction), header) == ParseError::kNone);
      CHECK(header.reduction == reduction);
      CHECK(header.element_type == ElementType::kInt64);
    }
  }
  std::vector<std::byte> bytes(kMaxDatagramBytes);
  write_block(bytes, {.type = PacketType::kPush},
              block_of(Operation::kAllReduce, Reduction::kProduct), nullptr);
  CHECK(bytes[kTypesAt] == std::byte{0x36});
}

TEST_CASE("only what all contribute to without a bucket is no sum") {
  BlockHeader header;
  for (const Reduction reduction : {Reduction::kMax, Reduction::kMin, Reduction::kProduct}) {
    CAPTURE(reduction_name(reduction));
    CHECK(read(block_of(Operation::kAllReduce, reduction, 7), header) == ParseError::kBadField);
    CHECK(read(block_of(Operation::kAllGather, reduction), header) == ParseError::kBadField);
    CHECK(read(block_of(Operation::kBroadcast, reduction), header) == ParseError::kBadField);
    CHECK(read(block_of(Operation::kExchange, reduction), header) == ParseError::kBadField);
  }
  CHECK(read(block_of(Operation::kAllReduce, Reduction{4}), header) == ParseError::kBadField);
  CHECK(read(block_of(Operation::kAllReduce, Reduction{15}), header) == ParseError::kBadField);
}
