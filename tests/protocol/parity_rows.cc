// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "dataplane/hop/parity.h"
#include "tests/protocol/packet_rows.h"

namespace gradplane::testing {
namespace {

using hop::Drop;
using Answer = Effect::Answer;

constexpr std::uint32_t kNow = TableNode::kRound;
// A round of which nothing has come; tree 0 carries blocks 8 to 15.
constexpr std::uint32_t kNext = kNow + 1;
constexpr std::uint32_t kFirst = TableNode::kTreeBlocks;
constexpr std::uint8_t kRows = 3;

PacketBuilder block_of(const TableNode& n, std::uint32_t block, std::uint32_t round = kNext) {
  return n.push(2, 0, block, round).parity_rows(kRows);
}

/// The first `count` blocks of node 2, in a round whose range in tree 0 begins with kFirst.
std::vector<PacketBuilder> blocks_of(const TableNode& n, std::uint32_t count) {
  std::vector<PacketBuilder> blocks;
  for (std::uint32_t b = 0; b < count; ++b) blocks.push_back(block_of(n, kFirst + b));
  return blocks;
}

/// The parity that node 2 sends after its blocks.
PacketBuilder parity_of(const TableNode& n, std::uint16_t row) {
  hop::ParityTable table(kMinBlockBytes, TableNode::kTreeBlocks);
  hop::Parity* parity = table.take(kRows, TableNode::kTreeBlocks);
  for (std::uint32_t b = 0; b < TableNode::kTreeBlocks; ++b) {
    const std::vector<std::byte> packet = block_of(n, kFirst + b).bytes();
    parity->add(b, std::span(packet).subspan(kPayloadAt, kMinBlockBytes), WireType::kElements);
  }
  const std::span<const std::byte> bytes = parity->row(row);
  return block_of(n, kFirst)
      .type(wire::PacketType::kPushParity)
      .flags(0)
      .index(row)
      .payload({bytes.begin(), bytes.end()});
}

// A bucket of which the node knows no wire types, so that it takes those that come.
constexpr std::uint16_t kOtherBucket = 9;
constexpr std::size_t kBlockElements = kMinBlockBytes / sizeof(float);

/// A block of the tree, counted from its first one, in a wire type.
PacketBuilder narrow_block(const TableNode& n, std::uint32_t number, WireType type) {
  std::vector<std::byte> payload(wire_bytes(type, ElementType::kFloat32, kBlockElements));
  for (std::size_t i = kScaleBytes; i < payload.size(); ++i)
    payload[i] = static_cast<std::byte>(i * (number + 3));
  return block_of(n, kFirst + number).bucket(kOtherBucket).wire_type(type).payload(payload);
}

/// The wire types of the blocks of a round. The last block is the one that does not come.
using Types = std::array<WireType, TableNode::kTreeBlocks>;
constexpr auto kPlain = WireType::kElements;
constexpr auto kHalf = WireType::kBfloat16;
constexpr auto kByte = WireType::kInt8;
constexpr Types kMixed{kHalf, kPlain, kByte, kPlain, kHalf, kByte, kPlain, kByte};
constexpr Types kBytes{kByte, kByte, kByte, kByte, kByte, kByte, kByte, kByte};

std::vector<PacketBuilder> all_but_the_last(const TableNode& n, const Types& types) {
  std::vector<PacketBuilder> blocks;
  for (std::uint32_t b = 0; b + 1 < types.size(); ++b)
    blocks.push_back(narrow_block(n, b, types[b]));
  return blocks;
}

/// The first row of parity over these blocks, whose last block has the scale `last_scale`, or,
/// instead of its type, the number `last_type`.
PacketBuilder parity_of_types(const TableNode& n, const Types& types, std::uint32_t last_scale = 0,
                              std::optional<std::uint8_t> last_type = {}) {
  hop::ParityTable table(kMinBlockBytes, types.size());
  hop::Parity* parity = table.take(kRows, TableNode::kTreeBlocks);
  for (std::uint32_t b = 0; b < types.size(); ++b) {
    std::vector<std::byte> packet = narrow_block(n, b, types[b]).bytes();
    const bool is_last = b + 1 == types.size();
    if (is_last) std::memcpy(packet.data() + kPayloadAt, &last_scale, sizeof last_scale);
    const WireType type = is_last && last_type ? WireType{*last_type} : types[b];
    const std::size_t bytes = wire_bytes(types[b], ElementType::kFloat32, kBlockElements);
    parity->add(b, std::span(packet).subspan(kPayloadAt, bytes), type);
  }
  const auto bytes = parity->row(0).first(parity->longest_bytes());
  return block_of(n, kFirst)
      .type(wire::PacketType::kPushParity)
      .flags(0)
      .index(0)
      .bucket(kOtherBucket)
      .wire_type(kByte)
      .contributors(static_cast<std::uint16_t>(wire::kParityTypesBit | parity->types(0)))
      .payload({bytes.begin(), bytes.end()});
}

std::vector<PacketBuilder> and_then(std::vector<PacketBuilder> before, PacketBuilder packet) {
  before.push_back(std::move(packet));
  return before;
}

void append(Rows& rows, Rows more) {
  for (Row& row : more) rows.push_back(std::move(row));
}

Rows recovering_rows(const TableNode& n) {
  return {
      {"that makes good the last block",
       blocks_of(n, 7),
       parity_of(n, 0),
       {.received = 1, .answer = Answer::kComplete}},
      {"that makes good two blocks with another one",
       and_then(blocks_of(n, 6), parity_of(n, 2)),
       parity_of(n, 0),
       {.received = 2, .answer = Answer::kComplete}},
      {"where more is missing than rows have come", blocks_of(n, 6), parity_of(n, 0), {}},
      {"the last of its sender, where more is missing",
       blocks_of(n, 6),
       parity_of(n, 0).flags(wire::kFlagLast),
       {.answer = Answer::kAck}},
      {"that has come before", and_then(blocks_of(n, 6), parity_of(n, 1)), parity_of(n, 1),
       dropped(Drop::kDuplicate)},
      {"where nothing is missing", blocks_of(n, 8), parity_of(n, 0), dropped(Drop::kDuplicate)},
      {"the last of its sender, where nothing is missing", blocks_of(n, 8),
       parity_of(n, 0).flags(wire::kFlagLast), dropped(Drop::kDuplicate, Answer::kComplete)},
      {"before a block that leaves no more missing than rows have come",
       and_then(blocks_of(n, 6), parity_of(n, 1)),
       block_of(n, 15),
       {.received = 2, .answer = Answer::kComplete}},
  };
}

Rows rows_over_types(const TableNode& n) {
  constexpr std::uint32_t kInfinity = 0x7f800000;
  constexpr std::uint8_t kNoType = kWireTypes.size();
  Rows rows{
      {"over wire types that makes good the last block",
       all_but_the_last(n, kMixed),
       parity_of_types(n, kMixed),
       {.received = 1, .answer = Answer::kComplete}},
      {"over int8, as short as these blocks",
       all_but_the_last(n, kBytes),
       parity_of_types(n, kBytes, kInfinity - 1),
       {.received = 1, .answer = Answer::kComplete}},
      {"over a block whose scale is infinite", all_but_the_last(n, kMixed),
       parity_of_types(n, kMixed, kInfinity), dropped(Drop::kBadGeometry)},
      {"over a block of a type that there is not", all_but_the_last(n, kMixed),
       parity_of_types(n, kMixed, 0, kNoType), dropped(Drop::kBadGeometry)},
      {"over wire types that says otherwise what it is about", all_but_the_last(n, kMixed),
       parity_of_types(n, kMixed).contributors(1), dropped(Drop::kMalformed)},
      {"over wire types that is longer than a block", all_but_the_last(n, kMixed),
       parity_of_types(n, kMixed).payload(std::vector<std::byte>(kMinBlockBytes + 4)),
       dropped(Drop::kBadGeometry)},
  };
  for (Row& row : rows) row.is_of_bucket = true;
  return rows;
}

Rows unused_rows(const TableNode& n) {
  const auto named = [&](std::uint8_t rows) { return parity_of(n, 0).parity_rows(rows); };
  return {
      {"of blocks that announced none",
       {n.push(2, 0, 8, kNext), n.push(2, 0, 9, kNext)},
       parity_of(n, 0),
       dropped(Drop::kUnusedParity)},
      {"of blocks of which the first announced none",
       {n.push(2, 0, 8, kNext), block_of(n, 9)},
       parity_of(n, 0),
       dropped(Drop::kUnusedParity)},
      {"of blocks of which the last announced none",
       and_then(blocks_of(n, 6), n.push(2, 0, 14, kNext)), parity_of(n, 0),
       dropped(Drop::kUnusedParity)},
      {"of more rows than were announced", blocks_of(n, 7), named(kRows + 1),
       dropped(Drop::kUnusedParity)},
      {"of fewer rows than were announced", blocks_of(n, 7), named(kRows - 1),
       dropped(Drop::kUnusedParity)},
      {"of a sender of whom nothing has come",
       {n.push(3, 0, 8, kNext)},
       parity_of(n, 0),
       dropped(Drop::kFutureRound)},
      {"of a round that is not open", {}, parity_of(n, 0), dropped(Drop::kFutureRound)},
      {"of the round that ended",
       {},
       parity_of(n, 0).round(kNow - 1),
       dropped(Drop::kPastRound, Answer::kComplete)},
  };
}

Rows wrong_rows(const TableNode& n) {
  const PacketBuilder good = parity_of(n, 0);
  const auto but = [&good] { return PacketBuilder(good); };
  const std::vector<PacketBuilder> before = blocks_of(n, 7);
  const auto wrong = [&](std::string what, PacketBuilder packet, Drop why) {
    return Row{std::move(what), before, std::move(packet), dropped(why)};
  };
  const auto malformed = [&](std::string what, PacketBuilder packet) {
    return wrong(std::move(what), std::move(packet), Drop::kMalformed);
  };
  const std::vector<std::byte> shorter(kMinBlockBytes - 4);
  const std::vector<std::byte> longer(kMinBlockBytes + 4);
  return {
      wrong("shorter than a block", but().payload(shorter), Drop::kBadGeometry),
      wrong("longer than a block", but().payload(longer), Drop::kBadGeometry),
      wrong("of a smaller bucket", but().round_elements(2047), Drop::kBadGeometry),
      wrong("of a registered bucket", but().bucket(7), Drop::kBadGeometry),
      wrong("of another number of ranks", but().contributors(2), Drop::kBadContributors),
      wrong("of another type", but().element_type(ElementType::kInt32), Drop::kBadGeometry),
      wrong("from the parent: the wrong direction", but().sender(0), Drop::kNotPeer),
      wrong("in a tree that is not", but().tree(2), Drop::kNotPeer),
      wrong("of results, from a child", but().type(wire::PacketType::kResultParity),
            Drop::kNotPeer),
      wrong("of another plan", but().epoch(2), Drop::kWrongEpoch),
      wrong("with the tag of another key", but().key(kOtherKey), Drop::kBadTag),
      wrong("with a changed payload", but().poke(kPayloadAt, 0xff), Drop::kBadTag),
      malformed("beyond the last", but().index(kRows)),
      malformed("of no rows", but().parity_rows(0)),
      malformed("of more rows than there can be", but().parity_rows(wire::kMaxParityRows + 1)),
      malformed("without a hop extension", but().without_hop()),
      malformed("that is partial", but().flags(wire::kFlagPartial)),
      malformed("of no rank", but().contributors(0)),
      malformed("of another operation", but().operation(Operation::kAllGather)),
      malformed("of a wire type, without the parity of types",
                but().bucket(7).wire_type(WireType::kBfloat16)),
      malformed("without bytes", but().payload({})),
  };
}

}  // namespace

Rows parity_rows(const TableNode& n) {
  Rows rows = recovering_rows(n);
  append(rows, rows_over_types(n));
  append(rows, unused_rows(n));
  append(rows, wrong_rows(n));
  return rows;
}

}  // namespace gradplane::testing
