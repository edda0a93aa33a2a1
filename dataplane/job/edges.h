// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/hop/block_receiver.h"
#include "dataplane/hop/block_sender.h"
#include "dataplane/job/job_config.h"
#include "dataplane/job/progress_watch.h"
#include "dataplane/model/limits.h"

namespace gradplane::job {

/// Blocks of one tree on their way to one peer: pushes to the parent or results to a child. One
/// BlockSender for each round slot, and one bit for each in `queued`, `waiting` and `held`.
struct OutEdge {
  std::uint16_t peer = 0;
  std::uint8_t tree = 0;
  wire::PacketType type = wire::PacketType::kPush;
  std::uint16_t queued = 0;   // slots with blocks to send
  std::uint16_t waiting = 0;  // slots with blocks in flight
  /// Slots of rounds whose results the peer cannot take yet: it has pushed nothing of them. What is
  /// held is not queued.
  std::uint16_t held = 0;
  std::vector<hop::BlockSender> senders;
  std::array<std::uint32_t, kRoundSlots> active_us{};  // when something last went out or was acked
  std::array<std::uint8_t, kRoundSlots> backoff{};     // probes without an answer
  Inquiry inquiry;                                     // pushes: of what waits for results
  std::uint32_t next_question = 0;                     // which block of the range it names
};
static_assert(kRoundSlots <= 16, "one bit per slot in OutEdge::queued, waiting and held");

/// The same blocks, seen by their receiver.
struct InEdge {
  std::uint16_t peer = 0;
  std::uint8_t tree = 0;
  wire::PacketType type = wire::PacketType::kPush;
  std::uint16_t ranks = 0;          // pushes: in the child's subtree; results: of the job
  std::uint16_t source = 0;         // pushes: which of the tree's children
  std::uint16_t results = kNoPeer;  // pushes: index of the edge on which results go back
  std::vector<hop::BlockReceiver> receivers;
};

/// All edges of one job at this node. Fixed by the plan.
struct Edges {
  explicit Edges(const JobConfig& config);

  /// The edge that a packet of `type` from or to `peer` in `tree` belongs to; kNoEdge if the plan
  /// has none.
  static constexpr std::size_t kNoEdge = SIZE_MAX;
  std::size_t find_out(wire::PacketType type, std::uint8_t tree, std::uint16_t peer) const;
  std::size_t find_in(wire::PacketType type, std::uint8_t tree, std::uint16_t peer) const;

  std::vector<OutEdge> out;
  std::vector<InEdge> in;
  std::vector<std::vector<std::uint16_t>> out_of_peer;  // indices into `out`
  std::vector<std::vector<std::uint16_t>> in_of_peer;
  std::vector<std::vector<std::uint16_t>> results_out_of_tree;
  std::vector<std::uint16_t> push_out_of_tree;  // kNoPeer at the root
};

}  // namespace gradplane::job
