// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <cstdint>
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
    parity->add(b, std::span(packet).subspan(kPayloadAt, kMinBlockBytes));
  }
  const std::span<const std::byte> bytes = parity->row(row);
  return block_of(n, kFirst)
      .type(wire::PacketType::kPushParity)
      .flags(0)
      .index(row)
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
      malformed("of a wire type", but().bucket(7).wire_type(WireType::kBfloat16)),
      malformed("without bytes", but().payload({})),
  };
}

}  // namespace

Rows parity_rows(const TableNode& n) {
  Rows rows = recovering_rows(n);
  append(rows, unused_rows(n));
  append(rows, wrong_rows(n));
  return rows;
}

}  // namespace gradplane::testing
