// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dataplane/hop/counters.h"
#include "tests/support/table_node.h"

namespace gradplane::testing {

/// The effect of one packet on a TableNode, by counter. Effects that are not named must not happen.
struct Effect {
  std::optional<hop::Drop> drop = std::nullopt;
  std::uint32_t received = 0;  // blocks taken into the round
  // Blocks of this node that leave the flight, because they are acked or lost.
  std::uint32_t landed = 0;
  std::uint32_t lost = 0;  // those of them that will be sent again
  enum class Answer { kNone, kAck, kComplete } answer = Answer::kNone;  // sent at once
};

struct Row {
  std::string description;
  std::vector<PacketBuilder> before;  // delivered before, without a check
  PacketBuilder packet;
  Effect effect;
  int via = -1;  // the node from whose address it comes; -1: the node that it names
  /// The next round has begun with blocks of a bucket, which this node's own ranks do not have.
  bool is_of_bucket = false;
};
using Rows = std::vector<Row>;

inline constexpr wire::Key kOtherKey{std::byte{9}};

inline Effect dropped(hop::Drop reason, Effect::Answer answer = Effect::Answer::kNone) {
  return {.drop = reason, .answer = answer};
}

Rows push_rows(const TableNode& node);
Rows result_rows(const TableNode& node);
Rows push_ack_rows(const TableNode& node);
Rows result_ack_rows(const TableNode& node);
Rows envelope_rows(const TableNode& node);
Rows route_rows(const TableNode& node);
Rows group_rows(const TableNode& node);
Rows parity_rows(const TableNode& node);

}  // namespace gradplane::testing
