// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Which packets may carry a block in another type than the tensor's.
#include <cstring>
#include <limits>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/packet.h"

using namespace gradplane;
using namespace gradplane::wire;
using gradplane::testing::PacketBuilder;

namespace {

constexpr std::uint16_t kBucket = 7;

PacketBuilder push(ElementType type, WireType wire, std::size_t payload_bytes, float scale = 0.5F) {
  const PacketBuilder::Round round{.geometry = Geometry::of(type, 128, kMinBlockBytes, kBucket)};
  std::vector<std::byte> payload(payload_bytes);
  std::memcpy(payload.data(), &scale, std::min(payload_bytes, sizeof scale));
  return PacketBuilder::block(PacketType::kPush, round, 0).wire_type(wire).payload(payload);
}

ParseError parse(PacketBuilder packet) {
  const std::vector<std::byte> datagram = packet.bytes();
  Envelope envelope;
  REQUIRE(read_envelope(datagram, envelope) == ParseError::kNone);
  BlockPacket block;
  return read_block(envelope, std::span(datagram).first(datagram.size() - kTagBytes), block);
}

}  // namespace

TEST_CASE("only sums of a bucket's fp32 go in a narrower type, in whole elements") {
  using enum WireType;
  constexpr auto kFp32 = ElementType::kFloat32;
  CHECK(parse(push(kFp32, kElements, 512)) == ParseError::kNone);
  CHECK(parse(push(kFp32, kBfloat16, 256)) == ParseError::kNone);
  CHECK(parse(push(kFp32, kFloat16, 256)) == ParseError::kNone);
  CHECK(parse(push(kFp32, kInt8, 132)) == ParseError::kNone);
  for (const WireType wire : {kBfloat16, kFloat16, kInt8}) {
    INFO(wire_type_name(wire));
    CHECK(parse(push(kFp32, wire, 100).bucket(0)) == ParseError::kBadField);
    CHECK(parse(push(kFp32, wire, 100).operation(Operation::kExchange)) == ParseError::kBadField);
    CHECK(parse(push(ElementType::kBfloat16, wire, 100)) == ParseError::kBadField);
    CHECK(parse(push(ElementType::kFloat64, wire, 104)) == ParseError::kBadField);
  }
  CHECK(parse(push(kFp32, kBfloat16, 255)) == ParseError::kBadLength);
  CHECK(parse(push(kFp32, kFloat16, 255)) == ParseError::kBadLength);
  CHECK(parse(push(kFp32, kInt8, 23)) == ParseError::kNone);
  CHECK(parse(push(kFp32, kInt8, 4)) == ParseError::kBadLength);
  CHECK(parse(push(kFp32, kInt8, 3)) == ParseError::kBadLength);
  CHECK(parse(push(kFp32, WireType{4}, 512)) == ParseError::kBadField);
}

TEST_CASE("the scale of a block of int8 is finite and not negative") {
  const auto with_scale = [](float scale) {
    return parse(push(ElementType::kFloat32, WireType::kInt8, 132, scale));
  };
  CHECK(with_scale(0) == ParseError::kNone);
  CHECK(with_scale(std::numeric_limits<float>::max()) == ParseError::kNone);
  CHECK(with_scale(-1) == ParseError::kBadField);
  CHECK(with_scale(std::numeric_limits<float>::infinity()) == ParseError::kBadField);
  CHECK(with_scale(std::numeric_limits<float>::quiet_NaN()) == ParseError::kBadField);
}
