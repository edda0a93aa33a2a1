// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dataplane/hop/counters.h"
#include "tests/support/table_node.h"

namespace gradplane::testing {

/// What one packet does to a TableNode, counter by counter. What is not named does not happen.
struct Effect {
  std::optional<hop::Drop> drop = std::nullopt;
  std::uint32_t received = 0;  // blocks taken into the round
  std::uint32_t landed = 0;    // blocks of ours that are no longer in flight: acked, or lost
  std::uint32_t lost = 0;      // of them, those that will be sent again
  enum class Answer { kNone, kAck, kComplete } answer = Answer::kNone;  // at once
};

struct Row {
  std::string description;
  std::vector<PacketBuilder> before;  // delivered first; not judged
  PacketBuilder packet;
  Effect effect;
  int via = -1;  // the node whose address it comes from, if not the one that it names
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
