// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// What parity does for rounds on long paths, and which rounds have none, with whole engines.
#include "tests/sim/cluster.h"
#include "tests/sim/rounding_checker.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::sim;

namespace {

constexpr std::uint32_t kRounds = 12;

/// LTP's path: eight ranks of a star, 200 Mbit/s, round trips of 100 ms, and 3 % of all packets
/// lost.
Scenario lossy(std::size_t bytes) {
  Scenario s;
  s.seed = 1;
  s.link.bits_per_second = 200'000'000;
  s.link.delay = Duration::ms(50);
  s.link.loss = 0.03;
  s.link.queue_bytes = 256 << 10;
  s.plan = star(8);
  s.block_bytes = kDefaultBlockBytes;
  s.round_bytes = kMaxRoundBytes;
  s.in_flight = 1;
  s.rounds.assign(kRounds, {ElementType::kFloat32, static_cast<std::uint32_t>(bytes / 4)});
  return s;
}

/// The same rounds, of a tensor of which a fifth of the blocks may be missing.
Scenario lacking_some(Scenario s) {
  api::BucketBounds bucket{.bucket = 1, .elements = s.rounds[0].elements, .tensors = {{}}};
  bucket.tensors[0].elements = bucket.elements;
  bucket.tensors[0].bound = 0.2F;
  s.tolerance.layout = Coding::Layout::kSpread;
  s.tolerance.slack = Duration::ms(30);
  s.tolerance.buckets = {bucket};
  s.rounds.assign(s.rounds.size(), round_of(bucket));
  return s;
}

Outcome run_well(const Scenario& s) {
  Outcome outcome = run(s);
  INFO(outcome.failure);
  REQUIRE(outcome.failure.empty());
  return outcome;
}

double seconds(const Outcome& outcome) {
  return (outcome.ended - Instant()).to_seconds();
}

void check_has_none(const Scenario& s) {
  const Outcome outcome = run_well(s);
  CHECK(outcome.counters.parity_sent == 0);
  CHECK(outcome.counters.blocks_recovered == 0);
}

}  // namespace

TEST_CASE("parity saves the round trips that losses at the end of rounds cost") {
  const std::size_t bytes = GENERATE(64 << 10, 1 << 20);
  CAPTURE(bytes);
  Scenario s = lossy(bytes);
  const Outcome with = run_well(s);
  s.parity_from.reset();
  const Outcome without = run_well(s);
  CHECK(without.counters.parity_sent == 0);
  // This is nearly two round trips of 100 ms in each round.
  CHECK(seconds(without) - seconds(with) > 0.13 * kRounds);
  CHECK(with.counters.blocks_recovered > 0);
  // Parity is a small part of the packets, and less than the retransmissions that it saves.
  CHECK(with.counters.parity_sent * 5 < with.counters.blocks_sent);
  CHECK(with.counters.parity_sent + with.counters.blocks_sent < without.counters.blocks_sent);
}

TEST_CASE("rows that were sent keep blocks from going again that they make good") {
  const Outcome outcome = run_well(lossy(256 << 10));
  // The first round has retransmissions, and so do blocks that are lost before a round's end.
  CHECK(outcome.counters.blocks_retransmitted < outcome.counters.blocks_sent / 30);
}

TEST_CASE("a round that may lack blocks waits for rows that make them good") {
  const std::size_t bytes = GENERATE(64 << 10, 1 << 20);
  CAPTURE(bytes);
  const Outcome exact = run_well(lossy(bytes));
  const Outcome bounded = run_well(lacking_some(lossy(bytes)));
  // Partial results have no parity, so to close a round earlier would take longer.
  CHECK(seconds(bounded) < 1.03 * seconds(exact));
  CHECK(bounded.counters.blocks_missing * 2000 < bounded.counters.blocks_sent);
}

TEST_CASE("a round that may lack blocks waits for the next row, too, where a row takes long") {
  Scenario s = lossy(64 << 10);
  s.seed = GENERATE(1U, 5U);
  s.link.bits_per_second = 40'000'000;
  s.link.delay = Duration::ms(15);
  CHECK(run_well(lacking_some(s)).counters.blocks_missing == 0);
}

TEST_CASE("rounds in wire types have parity, too, although a packet has several of their blocks") {
  const WireType wire = GENERATE(WireType::kBfloat16, WireType::kInt8);
  CAPTURE(wire_type_name(wire));
  Scenario s = lossy(64 << 10);
  narrow_rounds(s, wire);
  const Outcome with = run_well(s);
  s.parity_from.reset();
  const Outcome without = run_well(s);
  CHECK(seconds(without) - seconds(with) > 0.1 * kRounds);
  CHECK(with.counters.blocks_recovered > 0);
  CHECK(with.counters.blocks_retransmitted * 5 < without.counters.blocks_retransmitted);
  CHECK(with.counters.payload_bytes_saved > 0);
}

TEST_CASE("rounds have as many rows as their narrowest blocks need") {
  Scenario s = lossy(64 << 10);
  narrow_rounds(s, WireType::kInt8);
  const Outcome narrow = run_well(s);
  // Some block is as in the trainer's buffer, and as long as four others: the first one or a later.
  const bool is_first = GENERATE(true, false);
  CAPTURE(is_first);
  constexpr std::uint32_t kBlock = kDefaultBlockBytes / sizeof(float);
  std::vector<api::BoundedTensor>& tensors = s.tolerance.buckets[0].tensors;
  const std::uint32_t begin = is_first ? kBlock : 9 * kBlock;
  tensors.push_back(tensors[0]);
  tensors[1].offset_elements = begin;
  tensors[1].elements = tensors[0].elements - begin;
  tensors[0].elements = begin;
  if (is_first) {
    tensors[0].wire = WireType::kElements;
  } else {
    tensors.push_back(tensors[1]);
    tensors[1].elements = kBlock;
    tensors[1].wire = WireType::kElements;
    tensors[2].offset_elements += kBlock;
    tensors[2].elements -= kBlock;
  }
  const Outcome mixed = run_well(s);
  CHECK(mixed.counters.payload_bytes_saved * 10 > narrow.counters.payload_bytes_saved * 9);
  CHECK(mixed.counters.parity_sent * 10 > narrow.counters.parity_sent * 9);
}

TEST_CASE("from four packets on a round has parity, however many blocks these have") {
  struct Row {
    WireType wire;
    std::size_t blocks;
  };
  for (const Row& row :
       {Row{WireType::kElements, 4}, Row{WireType::kFloat16, 8}, Row{WireType::kInt8, 12}}) {
    CAPTURE(wire_type_name(row.wire));
    Scenario s = lossy(row.blocks * kDefaultBlockBytes);
    narrow_rounds(s, row.wire);
    CHECK(run_well(s).counters.parity_sent > 0);
    s = lossy((row.blocks - 1) * kDefaultBlockBytes);
    narrow_rounds(s, row.wire);
    check_has_none(s);
  }
}

TEST_CASE("no parity goes where it does not pay") {
  SECTION("hundreds of packets have shown that nothing is lost") {
    Scenario s = lossy(1 << 20);
    s.link.loss = 0;
    check_has_none(s);
  }
  SECTION("the path is short") {
    Scenario s = lossy(64 << 10);
    s.link.delay = Duration::us(50);
    check_has_none(s);
  }
  SECTION("losses tell of congestion") {
    Scenario s = lossy(64 << 10);
    s.congestion.controller = ControllerKind::kReno;
    check_has_none(s);
  }
  SECTION("nothing but losses bounds the window") {
    Scenario s = lossy(64 << 10);
    s.paced = false;
    check_has_none(s);
  }
  SECTION("blocks are no sums") {
    Scenario s = lossy(64 << 10);
    for (RoundPlan& round : s.rounds) round.operation = Operation::kAllGather;
    check_has_none(s);
  }
}

TEST_CASE("sums have the same bits with parity and without") {
  Scenario s = lossy(64 << 10);
  s.seed = GENERATE(1U, 2U, 3U);
  s.parity_from = Duration{};
  s.link.delay = Duration::ms(2);
  s.link.jitter = Duration::us(300);
  s.link.duplication = 0.02;
  s.link.loss = 0.08;
  s.in_flight = 3;
  // Each sum is compared bit by bit with the sum of all ranks' elements.
  CHECK(run_well(s).counters.blocks_recovered > 0);
}
