// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Rounds with narrower wire types, with real packets: a root and two leaves.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "dataplane/hop/parity.h"
#include "tests/support/bounded_star.h"
#include "tests/support/catch.h"
#include "tests/support/packet.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

constexpr std::uint32_t kNarrow = BoundedStar::kBlocks / 2;  // the first block of the second tensor

/// Those packets of a round that begin with a block of the second tensor.
struct Packets {
  std::vector<std::size_t> payload_bytes;
  std::set<WireType> types;
};

/// Submits a round at both leaves and lets it pass.
Packets packets_of_round(BoundedStar& star, std::uint32_t round, float a, float b) {
  REQUIRE(star.submit(1, round, a) == job::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, round, b) == job::SubmitResult::kAccepted);
  Packets packets;
  star.pass(Duration::ms(60), [&](std::uint16_t, const Sent& packet) {
    const SeenPacket h = packet.seen();
    const bool is_block = h.type == wire::PacketType::kPush || h.type == wire::PacketType::kResult;
    if (is_block && h.block >= kNarrow) {
      packets.payload_bytes.push_back(h.payload.size());
      packets.types.insert(h.wire_type);
    }
    return false;
  });
  REQUIRE(star.done(1));
  REQUIRE(star.done(2));
  return packets;
}

PacketBuilder::Round round_of(std::uint32_t id) {
  return {.id = id,
          .geometry = Geometry::of(ElementType::kFloat32, BoundedStar::kElements, kMinBlockBytes,
                                   BoundedStar::kBucket)};
}

}  // namespace

TEST_CASE("packets have as many blocks as their wire type leaves room for, both ways") {
  struct Row {
    WireType wire;
    std::size_t block_bytes;
    std::size_t blocks_of_packet;
  };
  // Each block has two pushes and two results.
  constexpr std::size_t kSent = 4 * BoundedStar::kBlocks / 2;
  for (const Row& row : {Row{WireType::kElements, 512, 1}, Row{WireType::kBfloat16, 256, 2},
                         Row{WireType::kFloat16, 256, 2}, Row{WireType::kInt8, 132, 3}}) {
    BoundedStar star({.wire = row.wire});
    star.learn();
    INFO(wire_type_name(row.wire));
    const std::vector<std::size_t> payloads = packets_of_round(star, 1, 1.25F, 2.5F).payload_bytes;
    CHECK(std::accumulate(payloads.begin(), payloads.end(), std::size_t{0}) ==
          kSent * row.block_bytes);
    CHECK(std::ranges::max(payloads) == row.blocks_of_packet * row.block_bytes);
    CHECK(std::ranges::all_of(payloads, [&](auto bytes) { return bytes % row.block_bytes == 0; }));
    // The first and the last packet of each sender may carry fewer blocks.
    CHECK(payloads.size() <= kSent / row.blocks_of_packet + 8);
    const hop::Counters& leaf = star.node(1).job().counters();
    CHECK(leaf.payload_bytes_saved == 2 * (512 - row.block_bytes) * BoundedStar::kBlocks / 2);
    CHECK(leaf.payload_bytes_sent + leaf.payload_bytes_saved == 2 * 512 * BoundedStar::kBlocks);
    CHECK(leaf.blocks_received == 2 * BoundedStar::kBlocks);
  }
}

TEST_CASE("where receivers grant, a packet has one block") {
  BoundedStar star({.grants = true, .wire = WireType::kInt8});
  star.learn();
  CHECK(std::ranges::max(packets_of_round(star, 1, 1.25F, 2.5F).payload_bytes) == 132);
}

TEST_CASE("a result is rounded, and the same at both leaves") {
  BoundedStar star({.wire = WireType::kBfloat16});
  star.learn();
  packets_of_round(star, 1, 1.001F, 3.003F);
  for (std::uint32_t b = 0; b < BoundedStar::kBlocks; ++b) {
    CAPTURE(b);
    // In bf16, 1.001 becomes 1 and 3.003 becomes 3.
    CHECK(star.result(1, 1, b) == (b < kNarrow ? 1.001F + 3.003F : 4));
    CHECK(star.result(2, 1, b) == star.result(1, 1, b));
  }
}

TEST_CASE("with carry a contribution that is too small for its type comes later") {
  BoundedStar star({.compensation = Compensation::kCarry, .wire = WireType::kInt8});
  star.learn();
  float sum = 0;
  for (std::uint32_t round = 1; round <= 8; ++round) {
    // One element of leaf 1's block is 100, so the others are less than half a step of int8.
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
    const Packets packets = packets_of_round(star, 1, std::numeric_limits<float>::quiet_NaN(), 3);
    CHECK(packets.types == std::set{WireType::kElements, wire});
    CHECK(std::isnan(star.result(1, 1, kNarrow)));
    CHECK(std::isnan(star.result(2, 1, kNarrow)));
    // The NaN is not carried into the next round.
    packets_of_round(star, 2, 1, 3);
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
  refuses(push(kNarrow, WireType::kBfloat16, 510));
  refuses(push(0, WireType::kBfloat16, 256));
  // The payload has two blocks, but the round has only one from there on.
  refuses(push(BoundedStar::kBlocks - 1, WireType::kBfloat16, 512));
  const std::uint64_t received = root.job().counters().blocks_received;
  root.deliver(1, push(kNarrow, WireType::kBfloat16, 256).number(200).bytes(), star.now());
  root.deliver(1, push(kNarrow + 1, WireType::kElements, 512).number(201).bytes(), star.now());
  CHECK(root.drops(hop::Drop::kBadGeometry) == refused);
  CHECK(root.job().counters().blocks_received == received + 2);
  root.deliver(1, push(kNarrow + 2, WireType::kBfloat16, 512).number(202).bytes(), star.now());
  CHECK(root.job().counters().blocks_received == received + 4);
}

TEST_CASE("a recovered block in a type that its tensors do not have is refused") {
  constexpr std::uint32_t kLost = kNarrow + 3;
  const auto lost = GENERATE(WireType::kBfloat16, WireType::kInt8, WireType::kElements);
  CAPTURE(lost);
  BoundedStar star({.wire = WireType::kBfloat16});
  star.learn();
  CoreNode& root = star.node(0);
  const std::uint64_t received = root.job().counters().blocks_received;
  hop::ParityTable table(kMinBlockBytes, BoundedStar::kBlocks);
  hop::Parity* parity = table.take(1, BoundedStar::kBlocks);
  std::uint64_t number = 100;
  const auto packet = [&](std::uint32_t block, WireType wire) {
    return PacketBuilder::block(wire::PacketType::kPush, round_of(1), block)
        .sender(1)
        .parity_rows(1)
        .wire_type(wire)
        .number(++number);
  };
  for (std::uint32_t b = 0; b < BoundedStar::kBlocks; ++b) {
    WireType wire = b < kNarrow ? WireType::kElements : WireType::kBfloat16;
    if (b == kLost) wire = lost;
    const std::vector<std::byte> payload(wire_bytes(wire, ElementType::kFloat32, 128));
    parity->add(b, payload, wire);
    if (b != kLost) root.deliver(1, packet(b, wire).payload(payload).bytes(), star.now());
  }
  const std::span<const std::byte> row = parity->row(0).first(parity->longest_bytes());
  root.deliver(
      1,
      packet(0, WireType::kBfloat16)
          .type(wire::PacketType::kPushParity)
          .flags(0)
          .contributors(static_cast<std::uint16_t>(wire::kParityTypesBit | parity->types(0)))
          .payload({row.begin(), row.end()})
          .bytes(),
      star.now());
  const bool is_refused = lost == WireType::kInt8;
  CHECK(root.drops(hop::Drop::kBadGeometry) == (is_refused ? 1 : 0));
  CHECK(root.job().counters().blocks_recovered == (is_refused ? 0 : 1));
  CHECK(root.job().counters().blocks_received ==
        received + BoundedStar::kBlocks - (is_refused ? 1 : 0));
}

TEST_CASE("each block of int8 in a packet has a sound scale") {
  BoundedStar star({.wire = WireType::kInt8});
  star.learn();
  CoreNode& root = star.node(0);
  const std::uint64_t received = root.job().counters().blocks_received;
  std::uint64_t number = 100;
  const auto deliver = [&](float second_scale) {
    std::vector<std::byte> payload(2 * 132);
    std::memcpy(payload.data() + 132, &second_scale, sizeof second_scale);
    root.deliver(1,
                 PacketBuilder::block(wire::PacketType::kPush, round_of(1), kNarrow)
                     .sender(1)
                     .wire_type(WireType::kInt8)
                     .payload(payload)
                     .number(++number)
                     .bytes(),
                 star.now());
  };
  deliver(-1);
  deliver(std::numeric_limits<float>::infinity());
  CHECK(root.drops(hop::Drop::kBadGeometry) == 2);
  CHECK(root.job().counters().blocks_received == received);
  deliver(0.5F);
  CHECK(root.job().counters().blocks_received == received + 2);
}

TEST_CASE("a mark counts for each block of its packet") {
  BoundedStar star({.wire = WireType::kBfloat16});
  star.learn();
  CoreNode& root = star.node(0);
  const auto push = [](std::uint32_t block, std::size_t bytes) {
    return PacketBuilder::block(wire::PacketType::kPush, round_of(1), block)
        .sender(1)
        .wire_type(WireType::kBfloat16)
        .payload(std::vector<std::byte>(bytes));
  };
  const auto marks = [&] { return root.job().peers()[0].marks_received[hop::kDirectPath]; };
  root.deliver(1, push(kNarrow, 512).number(100).bytes(), star.now(), true);
  CHECK(marks() == 2);
  root.deliver(1, push(kNarrow + 2, 256).number(101).bytes(), star.now(), true);
  root.deliver(1, push(kNarrow + 3, 512).number(102).bytes(), star.now(), false);
  CHECK(marks() == 3);
}
