// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "dataplane/awareness/loss_share.h"
#include "dataplane/hop/block_sender.h"
#include "dataplane/hop/parity.h"
#include "tests/support/catch.h"

using namespace gradplane;
using hop::Parity;
using hop::ParityTable;

namespace {

constexpr std::size_t kBlockBytes = 512;
using Block = std::vector<std::byte>;

std::vector<Block> some_blocks(std::size_t count, std::mt19937_64& random) {
  std::vector<Block> blocks(count, Block(kBlockBytes));
  blocks.back().resize(1 + random() % kBlockBytes);  // the last block of a round may be shorter
  for (Block& block : blocks) {
    for (std::byte& b : block) b = static_cast<std::byte>(random());
  }
  return blocks;
}

/// Blocks of one round may have different wire types.
WireType type_of(std::uint32_t block) {
  return kWireTypes[block * 7 / 3 % kWireTypes.size()];
}

struct Ends {
  explicit Ends(std::size_t blocks)
      : sender_table(kBlockBytes, blocks), receiver_table(kBlockBytes, blocks) {}

  ParityTable sender_table;
  ParityTable receiver_table;
};

/// Returns whether a receiver that lacks the blocks `lost` computes them from the rows `rows`, in
/// this order.
bool recovers(const std::vector<Block>& blocks, const std::set<std::uint32_t>& lost,
              const std::vector<std::size_t>& rows, std::size_t all_rows) {
  Ends ends(blocks.size());
  const auto count = static_cast<std::uint32_t>(blocks.size());
  Parity* sent = ends.sender_table.take(all_rows, count);
  Parity* came = ends.receiver_table.take(all_rows, count);
  for (std::uint32_t b = 0; b < count; ++b) {
    sent->add(b, blocks[b], type_of(b));
    if (lost.count(b) == 0) came->add(b, blocks[b], type_of(b));
  }
  for (const std::size_t r : rows) {
    REQUIRE(came->take_row(r, sent->row(r), sent->types(r)));
    CHECK_FALSE(came->take_row(r, sent->row(r), sent->types(r)));
  }
  const std::vector<std::uint32_t> missing(lost.begin(), lost.end());
  if (!ends.receiver_table.recover(*came, missing)) return false;
  for (std::size_t i = 0; i < missing.size(); ++i) {
    const Block& block = blocks[missing[i]];
    const auto found = ends.receiver_table.recovered(i);
    REQUIRE(WireType{ends.receiver_table.recovered_type(i)} == type_of(missing[i]));
    REQUIRE(std::equal(block.begin(), block.end(), found.begin()));
    REQUIRE(std::all_of(found.begin() + static_cast<std::ptrdiff_t>(block.size()), found.end(),
                        [](std::byte b) { return b == std::byte{0}; }));
  }
  return true;
}

}  // namespace

TEST_CASE("as many rows as blocks are missing give these blocks, whichever they are") {
  std::mt19937_64 random(7);
  int dependent = 0;
  constexpr int kDraws = 300;
  for (int draw = 0; draw < kDraws; ++draw) {
    const std::size_t count = 4 + random() % 300;
    const std::vector<Block> blocks = some_blocks(count, random);
    std::set<std::uint32_t> lost;
    const std::size_t want = 1 + random() % std::min<std::size_t>(count, hop::kMaxParityRows);
    while (lost.size() < want) lost.insert(static_cast<std::uint32_t>(random() % count));
    std::vector<std::size_t> rows(hop::kMaxParityRows);
    for (std::size_t r = 0; r < rows.size(); ++r) rows[r] = r;
    std::shuffle(rows.begin(), rows.end(), random);
    rows.resize(want);
    CAPTURE(draw, count, want);
    dependent += recovers(blocks, lost, rows, hop::kMaxParityRows) ? 0 : 1;
  }
  // On average the rows of one draw in 255 depend on each other.
  CHECK(dependent < kDraws / 30);
}

TEST_CASE("rows that depend on each other give nothing, and another row does") {
  std::mt19937_64 random(12);
  const std::vector<Block> blocks = some_blocks(600, random);
  int dependent = 0;
  for (std::uint32_t b = 1; b < 600; ++b) {
    if (recovers(blocks, {0, b}, {0, 1}, 3)) continue;
    ++dependent;
    CHECK((recovers(blocks, {0, b}, {0, 2}, 3) || recovers(blocks, {0, b}, {1, 2}, 3)));
  }
  CHECK(dependent > 0);
  CHECK(dependent < 20);
}

TEST_CASE("a row gives a single block, whichever of the two it is") {
  std::mt19937_64 random(8);
  const std::vector<Block> blocks = some_blocks(100, random);
  for (std::size_t row = 0; row < hop::kMaxParityRows; ++row) {
    for (std::uint32_t b = 0; b < 100; b += 33) {
      CHECK(recovers(blocks, {b}, {row}, hop::kMaxParityRows));
    }
  }
}

TEST_CASE("the factors of blocks never change") {
  // Both ends compute the factors, so they may not change between versions.
  CHECK(int{hop::parity_factor(0, 0)} == 128);
  CHECK(int{hop::parity_factor(0, 1)} == 239);
  CHECK(int{hop::parity_factor(1, 0)} == 10);
  CHECK(int{hop::parity_factor(8191, 31)} == 233);
  std::set<int> seen;
  for (std::uint32_t b = 0; b < 1000; ++b) seen.insert(hop::parity_factor(b, b % 32));
  CHECK(seen.size() > 240);
  CHECK(seen.count(0) == 0);
}

TEST_CASE("a block that is added twice counts once") {
  std::mt19937_64 random(9);
  const std::vector<Block> blocks = some_blocks(5, random);
  ParityTable table(kBlockBytes, 5);
  Parity* once = table.take(3, 5);
  Parity* twice = table.take(3, 5);
  for (std::uint32_t b = 0; b < 5; ++b) {
    once->add(b, blocks[b], type_of(b));
    twice->add(b, blocks[b], type_of(b));
    twice->add(b, blocks[b], type_of(b));
  }
  CHECK(twice->added() == 5);
  for (std::size_t r = 0; r < 3; ++r) {
    CHECK(std::equal(once->row(r).begin(), once->row(r).end(), twice->row(r).begin()));
    CHECK(once->types(r) == twice->types(r));
  }
}

TEST_CASE("parity knows the longest of its blocks, and the narrowest type") {
  ParityTable table(kBlockBytes, 8);
  Parity* parity = table.take(2, 8);
  const auto add = [&](std::uint32_t block, std::size_t bytes, WireType type) {
    parity->add(block, Block(bytes, std::byte{1}), type);
    CHECK(parity->has(block));
    return parity->narrowest();
  };
  CHECK_FALSE(parity->has(0));
  CHECK(add(0, 40, WireType::kElements) == WireType::kElements);
  CHECK(add(1, 20, WireType::kFloat16) == WireType::kFloat16);
  CHECK(add(2, 40, WireType::kElements) == WireType::kFloat16);
  CHECK(add(3, 14, WireType::kInt8) == WireType::kInt8);
  CHECK(add(4, 20, WireType::kBfloat16) == WireType::kInt8);
  CHECK(parity->longest_bytes() == 40);
}

TEST_CASE("rows are as many as the losses ask for, and no more than half of the blocks") {
  CHECK(hop::parity_rows_for(47, 0.03) == 7);
  CHECK(hop::parity_rows_for(240, 0.03) == 18);
  CHECK(hop::parity_rows_for(4, 0.03) == 2);
  CHECK(hop::parity_rows_for(4, 0.5) == 2);
  CHECK(hop::parity_rows_for(1000, 0.001) == 6);
  CHECK(hop::parity_rows_for(1000, 0.03) == 0);
  CHECK(hop::parity_rows_for(240, 0.03, 2) == 23);
  CHECK(hop::parity_rows_for(240, 0.03, 3) == 27);
  const std::uint32_t at_once = GENERATE(1U, 2U, 3U);  // blocks in a packet
  CAPTURE(at_once);
  std::mt19937_64 random(10);
  int lacking = 0;
  for (int draw = 0; draw < 20000; ++draw) {
    const std::uint32_t fewest = hop::kMinParityPackets * at_once;
    const std::uint32_t blocks = fewest + static_cast<std::uint32_t>(random() % 200);
    const std::size_t rows = hop::parity_rows_for(blocks, 0.03, at_once);
    REQUIRE(rows > 0);
    std::size_t lost = 0;
    std::size_t came = 0;
    std::uniform_real_distribution<> dice;
    for (std::uint32_t b = 0; b < blocks; b += at_once)
      lost += dice(random) < 0.03 ? std::min(at_once, blocks - b) : 0;
    for (std::size_t r = 0; r < rows; ++r) came += dice(random) < 0.03 ? 0 : 1;
    lacking += lost > came ? 1 : 0;
  }
  CHECK(lacking < 40);
}

TEST_CASE("a last packet with one block more costs few rounds") {
  // Blocks of int8: three in a packet, and the last one is short.
  constexpr std::array<std::uint32_t, 4> kPackets{3, 3, 3, 4};
  const std::size_t rows = hop::parity_rows_for(13, 0.03, 3);
  std::mt19937_64 random(11);
  std::uniform_real_distribution<> dice;
  int lacking = 0;
  for (int draw = 0; draw < 20000; ++draw) {
    std::size_t lost = 0;
    std::size_t came = 0;
    for (const std::uint32_t blocks : kPackets) lost += dice(random) < 0.03 ? blocks : 0;
    for (std::size_t r = 0; r < rows; ++r) came += dice(random) < 0.03 ? 0 : 1;
    lacking += lost > came ? 1 : 0;
  }
  CHECK(lacking < 20000 / 250);
}

TEST_CASE("a table gives what it has, and takes back what nobody uses any more") {
  ParityTable table(kBlockBytes, 8);
  std::vector<Parity*> taken;
  for (std::size_t n = 0; n < hop::kMaxParities; ++n) taken.push_back(table.take(2, 8));
  CHECK(std::count(taken.begin(), taken.end(), nullptr) == 0);
  CHECK(table.take(2, 8) == nullptr);
  Parity* other = ParityTable::share(taken[3]);
  ParityTable::release(taken[3]);
  CHECK(taken[3] == nullptr);
  CHECK(table.take(2, 8) == nullptr);
  other->add(1, Block(kBlockBytes, std::byte{1}), WireType::kInt8);
  ParityTable::release(other);
  CHECK(table.in_use() == hop::kMaxParities - 1);
  Parity* again = table.take(2, 8);
  REQUIRE(again != nullptr);
  CHECK(again->added() == 0);
  CHECK(again->longest_bytes() == 0);
  CHECK(again->narrowest() == WireType::kElements);
  CHECK(again->types(0) + again->types(1) == 0);
  CHECK(std::all_of(again->row(1).begin(), again->row(1).end(),
                    [](std::byte b) { return b == std::byte{0}; }));
}

TEST_CASE("the share of lost packets follows the gaps in their numbers") {
  awareness::LossShare share;
  for (std::uint64_t n = 5; n < 5 + awareness::kLossEvidence - 1; ++n) share.on_packet(n);
  CHECK(share.share() == 0);
  std::mt19937_64 random(11);
  const auto send = [&](std::uint64_t from, std::uint64_t count, double loss) {
    std::uniform_real_distribution<> dice;
    for (std::uint64_t n = from; n < from + count; ++n) {
      if (dice(random) >= loss) share.on_packet(n);
    }
  };
  send(100, 5000, 0.03);
  CHECK(share.share() > 0.015);
  CHECK(share.share() < 0.05);
  send(5100, 20000, 0);
  CHECK(share.share() > 0);
  CHECK(share.share() < hop::kMinParityLoss);
  // Packets that overtake others are no losses.
  for (std::uint64_t n = 25100; n < 26000; n += 2) {
    share.on_packet(n + 1);
    share.on_packet(n);
  }
  CHECK(share.share() < 0.01);
}

TEST_CASE("rows go behind all blocks of a round, once, and while something is in flight") {
  hop::BlockSender sender(64);
  sender.open({0, 8}, 0);
  sender.offer_all();
  while (sender.has_queued()) (void)sender.take(100);
  sender.queue_parity(2);
  CHECK(sender.queued() == 2);
  CHECK(sender.copies() == 0);
  // Block 0 is found lost, so it goes before the copies.
  const std::uint64_t arrived[] = {0xfe};
  CHECK(sender.on_ack(0, arrived) == 7);
  CHECK(sender.find_lost(1000, Duration::us(200)).blocks == 1);
  CHECK(sender.has_originals());
  const auto block = sender.take(2000);
  CHECK(block.block == 0);
  CHECK_FALSE(block.parity);
  for (std::uint32_t row = 0; row < 2; ++row) {
    const auto pick = sender.take(2000);
    CHECK(pick.parity);
    CHECK(pick.copy);
    CHECK(pick.block == row);
  }
  CHECK_FALSE(sender.has_queued());
  CHECK(sender.in_flight() == 1);
  sender.queue_parity(2);
  CHECK_FALSE(sender.has_queued());

  sender.open({0, 8}, 0);
  sender.offer_all();
  while (sender.has_queued()) (void)sender.take(100);
  sender.queue_parity(2);
  sender.on_complete();
  CHECK_FALSE(sender.has_queued());
}

TEST_CASE("while rows are on their way no block counts as lost") {
  hop::BlockSender sender(64);
  sender.open({0, 8}, 0);
  sender.offer_all();
  while (sender.has_queued()) (void)sender.take(100);
  sender.await_parity(5000);
  constexpr Duration kWindow = Duration::us(200);
  CHECK(sender.find_lost(5200, kWindow).blocks == 0);
  CHECK(sender.find_lost(5201, kWindow).blocks == 8);
}
