// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Rounds whose blocks go in narrower types, on real packets: one root, two leaves.
#include <cmath>
#include <limits>
#include <set>

#include "tests/support/bounded_star.h"
#include "tests/support/catch.h"
#include "tests/support/packet.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

constexpr std::uint32_t kNarrow = BoundedStar::kBlocks / 2;  // the first of the second tensor

/// Submits a round and lets it pass. The sizes of all packets with a block of the second tensor.
std::set<std::size_t> sizes_of_round(BoundedStar& star, std::uint32_t round, float a, float b) {
  REQUIRE(star.submit(1, round, a) == job::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, round, b) == job::SubmitResult::kAccepted);
  std::set<std::size_t> sizes;
  star.pass(Duration::ms(60), [&](std::uint16_t, const Sent& packet) {
    const SeenPacket h = packet.seen();
    const bool is_block = h.type == wire::PacketType::kPush || h.type == wire::PacketType::kResult;
    if (is_block && h.block >= kNarrow) sizes.insert(packet.bytes.size());
    return false;
  });
  REQUIRE(star.done(1));
  REQUIRE(star.done(2));
  return sizes;
}

PacketBuilder::Round round_of(std::uint32_t id) {
  return {.id = id,
          .geometry = Geometry::of(ElementType::kFloat32, BoundedStar::kElements, kMinBlockBytes,
                                   BoundedStar::kBucket)};
}

}  // namespace

TEST_CASE("packets are as long as their wire type makes them, both ways") {
  constexpr std::size_t kFull = wire::kBlockOverheadBytes + kMinBlockBytes;
  struct Row {
    WireType wire;
    std::size_t payload_bytes;
  };
  for (const Row& row : {Row{WireType::kElements, 512}, Row{WireType::kBfloat16, 256},
                         Row{WireType::kFloat16, 256}, Row{WireType::kInt8, 132}}) {
    BoundedStar star({.wire = row.wire});
    star.learn();
    INFO(wire_type_name(row.wire));
    CHECK(sizes_of_round(star, 1, 1.25F, 2.5F) ==
          std::set<std::size_t>{kFull - 512 + row.payload_bytes});
    const hop::Counters& leaf = star.node(1).job().counters();
    CHECK(leaf.payload_bytes_saved == 2 * (512 - row.payload_bytes) * BoundedStar::kBlocks / 2);
    CHECK(leaf.payload_bytes_sent + leaf.payload_bytes_saved == 2 * 512 * BoundedStar::kBlocks);
  }
}

TEST_CASE("a result is rounded, and the same at both leaves") {
  BoundedStar star({.wire = WireType::kBfloat16});
  star.learn();
  sizes_of_round(star, 1, 1.001F, 3.003F);
  for (std::uint32_t b = 0; b < BoundedStar::kBlocks; ++b) {
    CAPTURE(b);
    // 1.001 is 1 in bf16, and 3.003 is 3.
    CHECK(star.result(1, 1, b) == (b < kNarrow ? 1.001F + 3.003F : 4));
    CHECK(star.result(2, 1, b) == star.result(1, 1, b));
  }
}

TEST_CASE("with carry a contribution that is too small for its type comes later") {
  BoundedStar star({.compensation = Compensation::kCarry, .wire = WireType::kInt8});
  star.learn();
  float sum = 0;
  for (std::uint32_t round = 1; round <= 8; ++round) {
    // In the block of leaf 1 this one element is 100, so the others are less than half a step.
    REQUIRE(star.submit(1, round, 0.3F) == job::SubmitResult::kAccepted);
    *star.node(1).at(0, round, kNarrow * 128) = 100;
    REQUIRE(star.submit(2, round, 0) == job::SubmitResult::kAccepted);
    star.pass(Duration::ms(40));
    REQUIRE(star.done(1));
    sum += star.result(1, round, kNarrow);
  }
  CHECK(std::abs(sum - 8 * 0.3F) <= 100.0F / 127);
}

TEST_CASE("what is no number goes as it is, and is no number in the sum") {
  for (const WireType wire : {WireType::kBfloat16, WireType::kFloat16, WireType::kInt8}) {
    BoundedStar star({.compensation = Compensation::kCarry, .wire = wire});
    star.learn();
    INFO(wire_type_name(wire));
    const std::set<std::size_t> sizes =
        sizes_of_round(star, 1, std::numeric_limits<float>::quiet_NaN(), 3);
    CHECK(sizes.contains(wire::kBlockOverheadBytes + kMinBlockBytes));
    CHECK(std::isnan(star.result(1, 1, kNarrow)));
    CHECK(std::isnan(star.result(2, 1, kNarrow)));
    // And it is not carried.
    sizes_of_round(star, 2, 1, 3);
    CHECK(star.result(1, 2, kNarrow) == 4);
  }
}

TEST_CASE("a block in a type that its tensors do not have is refused") {
  BoundedStar star({.wire = WireType::kBfloat16});
  star.learn();
  CoreNode& root = star.node(0);
  const auto push = [](std::uint32_t block, WireType wire, std::size_t payload_bytes) {
    return PacketBuilder::block(wire::PacketType::kPush, round_of(1), block)
        .sender(1)
        .wire_type(wire)
        .payload(std::vector<std::byte>(payload_bytes));
  };
  std::uint64_t refused = 0;
  const auto refuses = [&](PacketBuilder packet) {
    root.deliver(1, packet.number(100 + refused).bytes(), star.now());
    CHECK(root.drops(hop::Drop::kBadGeometry) == ++refused);
  };
  refuses(push(kNarrow, WireType::kFloat16, 256));
  refuses(push(kNarrow, WireType::kInt8, 132));
  refuses(push(kNarrow, WireType::kBfloat16, 254));
  refuses(push(kNarrow, WireType::kBfloat16, 512));
  refuses(push(0, WireType::kBfloat16, 256));
  const std::uint64_t received = root.job().counters().blocks_received;
  root.deliver(1, push(kNarrow, WireType::kBfloat16, 256).number(200).bytes(), star.now());
  root.deliver(1, push(kNarrow + 1, WireType::kElements, 512).number(201).bytes(), star.now());
  CHECK(root.drops(hop::Drop::kBadGeometry) == refused);
  CHECK(root.job().counters().blocks_received == received + 2);
}
