// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Delivers one packet to a node in the middle of a round. The packet must have exactly the effect
// in its row, and whatever it was, the round must end with the right sum.
#include <set>

#include "tests/protocol/packet_rows.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

struct Seen {
  hop::Counters job;
  hop::Counters node;
  std::uint32_t in_flight = 0;
};

Seen look(TableNode& node) {
  return {node.core().job().counters(), node.core().node().counters(), node.in_flight()};
}

void check_drops(const Effect& expected, const Seen& before, const Seen& after) {
  for (std::size_t i = 0; i < hop::kDropCount; ++i) {
    const auto reason = static_cast<hop::Drop>(i);
    CAPTURE(hop::drop_name(reason));
    const std::uint64_t drops =
        after.job.drops[i] + after.node.drops[i] - before.job.drops[i] - before.node.drops[i];
    CHECK(drops == (expected.drop == reason ? 1 : 0));
  }
}

void check_answer(const Effect& expected, TableNode& node) {
  const std::optional<SeenPacket> ack = node.urgent_ack();
  CHECK(ack.has_value() == (expected.answer != Effect::Answer::kNone));
  if (!ack) return;
  const bool complete = (ack->flags & wire::kFlagComplete) != 0;
  CHECK(complete == (expected.answer == Effect::Answer::kComplete));
}

void check(const Row& row) {
  TableNode node;
  for (const PacketBuilder& packet : row.before) node.deliver(packet);
  while (node.urgent_ack()) {
  }
  const Seen before = look(node);
  node.deliver(row.packet, row.via);
  const Seen after = look(node);

  check_drops(row.effect, before, after);
  CHECK(after.job.blocks_received - before.job.blocks_received == row.effect.received);
  CHECK(before.in_flight - after.in_flight == row.effect.landed);
  CHECK(after.job.blocks_suspected_lost - before.job.blocks_suspected_lost == row.effect.lost);
  CHECK(after.job.rounds_completed == before.job.rounds_completed);
  check_answer(row.effect, node);

  CHECK(node.finish(TableNode::kRound));
  if (!row.is_of_bucket) CHECK(node.finish(TableNode::kRound + 1));
}

void check_all(Rows (*rows)(const TableNode&)) {
  const TableNode node;
  for (const Row& row : rows(node)) {
    CAPTURE(row.description);
    check(row);
  }
}

}  // namespace

TEST_CASE("a push") {
  check_all(push_rows);
}
TEST_CASE("a result") {
  check_all(result_rows);
}
TEST_CASE("an ack of pushes") {
  check_all(push_ack_rows);
}
TEST_CASE("an ack of results") {
  check_all(result_ack_rows);
}
TEST_CASE("an envelope") {
  check_all(envelope_rows);
}

TEST_CASE("a push on an auxiliary route") {
  check_all(route_rows);
}

TEST_CASE("a result for all children of its sender") {
  check_all(group_rows);
}

TEST_CASE("a row of parity") {
  check_all(parity_rows);
}

TEST_CASE("every reason to drop a packet has a row") {
  const TableNode node;
  std::set<hop::Drop> seen;
  for (const auto rows : {push_rows, result_rows, push_ack_rows, result_ack_rows, envelope_rows,
                          route_rows, group_rows, parity_rows}) {
    for (const Row& row : rows(node)) {
      if (row.effect.drop) seen.insert(*row.effect.drop);
    }
  }
  for (std::size_t i = 0; i < hop::kDropCount; ++i) {
    CAPTURE(hop::drop_name(static_cast<hop::Drop>(i)));
    CHECK(seen.count(static_cast<hop::Drop>(i)) == 1);
  }
}

TEST_CASE("a mismatch is reported once, with both sides of it") {
  TableNode node;
  (void)node.core().events();
  node.deliver(node.push(2, 0, 4).round_elements(2047));
  node.deliver(node.push(3, 0, 4).round_elements(2046));
  const std::vector<job::Event> events = node.core().events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == job::Event::Kind::kMismatch);
  CHECK(events[0].node == 2);
  CHECK(events[0].round == TableNode::kRound);
  CHECK(events[0].ours.elements == 2048);
  CHECK(events[0].theirs.elements == 2047);
}
