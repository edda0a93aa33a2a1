// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/aggregate/accumulator.h"
#include "dataplane/aggregate/context.h"
#include "dataplane/aggregate/gather.h"
#include "dataplane/aggregate/round.h"
#include "dataplane/aggregate/tree_config.h"
#include "dataplane/hop/edge.h"
#include "dataplane/wire/block.h"

namespace gradplane::aggregate {

/// One tree of a plan at this node: it gathers blocks from local ranks and children, sums them,
/// pushes the sums to the parent and passes results down. A leaf, a relay and a root differ only in
/// the edges that they have. Rounds are side by side in slots.
///
/// A tree touches nothing of another tree. It tells the round what it no longer waits for, and the
/// job sees from the round when that is done.
class Tree {
 public:
  struct Limits {
    std::uint32_t epoch = 0;
    std::uint8_t number = 0;  // of the tree in its plan
    std::size_t max_blocks = 0;
    std::size_t block_bytes = 0;
    std::size_t local_ranks = 0;
    std::uint16_t world_size = 0;
  };
  /// Allocates everything that its rounds will need.
  Tree(TreeConfig config, const Limits& limits);

  const TreeConfig& config() const { return config_; }
  /// Whether contributions meet here. A leaf with one rank sends that rank's bytes as they are.
  bool sums() const { return sums_; }
  /// A round under bounds may close here without all blocks.
  bool gathers() const { return config_.flat && config_.is_root() && !config_.children.empty(); }

  // Edges. Edge i of out() and edge i of in() lead to the same peer; with a parent, it is the
  // first.
  std::span<hop::OutEdge> out() { return out_; }
  std::span<const hop::OutEdge> out() const { return out_; }
  std::span<hop::InEdge> in() { return in_; }
  std::span<const hop::InEdge> in() const { return in_; }
  bool has_parent() const { return config_.parent != hop::kNoPeer; }
  hop::OutEdge& push() { return out_[0]; }
  const hop::OutEdge& push() const { return out_[0]; }
  hop::InEdge& results() { return in_[0]; }
  const hop::InEdge& results() const { return in_[0]; }
  std::span<hop::OutEdge> child_results() { return out().subspan(has_parent() ? 1 : 0); }
  std::span<hop::InEdge> child_pushes() { return in().subspan(has_parent() ? 1 : 0); }
  std::span<const hop::InEdge> child_pushes() const { return in().subspan(has_parent() ? 1 : 0); }
  /// The edge to `peer` over which blocks of `type` (pushes or results) leave, or come in; kNoEdge
  /// when the tree has none.
  static constexpr std::size_t kNoEdge = SIZE_MAX;
  std::size_t find_out(wire::PacketType type, std::uint16_t peer) const;
  std::size_t find_in(wire::PacketType type, std::uint16_t peer) const;

  /// The round begins here, with the blocks of `range`.
  void open(Round& round, BlockRange range);
  BlockRange range(std::size_t slot) const { return slots_[slot].range; }

  /// The contribution of the only local rank may be sent as it is. sums() is false.
  void offer_all(const Round& round);
  /// Adds one block of a local rank.
  void add_local(Context& job, Round& round, std::uint32_t block, std::span<const std::byte> bytes);
  /// Blocks of local ranks that are not added yet.
  std::uint32_t local_left(std::size_t slot) const { return slots_[slot].local_left; }
  /// Adds one block of a child that in_[edge] has accepted. `rtt`: the smallest to the child.
  void add_push(Context& job, Round& round, std::size_t edge, const wire::BlockPacket& packet,
                Duration rtt, Instant now);
  /// The result of one block has come from the parent.
  void take_result(Context& job, Round& round, const wire::BlockPacket& packet);
  /// After anything that may have been the last word about this round's push.
  void on_settled(Context& job, Round& round, bool was_settled, Instant now);

  /// The bytes of a block as they leave, and how many ranks they are of.
  std::span<const std::byte> bytes_to_send(const Context& job, const Round& round,
                                           std::uint32_t block, std::uint16_t& contributors) const;

  // Rounds that may lack blocks.
  /// Slots with a round that is gathered under bounds here, one bit each.
  std::uint16_t gathering() const { return gathering_; }
  /// Whether the round may close now without some blocks, and why.
  std::optional<CloseReason> may_close(std::size_t slot, Instant now);
  /// Sums what has come. From here on nothing more enters, and every child is told what did.
  /// Returns how many blocks will never come; edges of which some will not are closed by it.
  std::uint32_t close_partial(Context& job, Round& round, CloseReason reason, Instant now);
  /// A child may take no result because it has not heard that the round has closed without it: then
  /// results fill its window, and it can be told in no other way.
  void repeat_closing(Context& job, std::size_t edge, std::size_t slot, std::uint32_t round,
                      Instant now);

 private:
  /// One round of the tree: its sums, and whether it may lack blocks.
  struct Slot {
    BlockRange range;
    std::uint32_t local_left = 0;
    Gather* gather = nullptr;  // open; the bucket's
    Accumulator sums;
  };

  void add_edges(const Limits& limits);
  void open_gather(Round& round);
  void on_gathered(Context& job, Round& round, std::uint32_t block);
  void on_result(Context& job, Round& round, std::uint32_t block, std::span<const std::byte> bytes,
                 std::uint16_t contributors);
  void note_energy(const Context& job, Round& round, std::uint32_t block,
                   std::span<const std::byte> bytes);
  bool is_measured(const Context& job, const Round& round, std::uint32_t block) const;
  void close_if_full(Context& job, Round& round);
  void end_gather(Context& job, Round& round, CloseReason reason, Instant now);
  void keep_contribution(Context& job, Round& round, std::uint32_t block);
  void settle_residual(Context& job, Round& round);

  TreeConfig config_;
  std::uint8_t number_;
  std::uint16_t local_ranks_;
  bool sums_;
  std::vector<hop::OutEdge> out_;
  std::vector<hop::InEdge> in_;
  std::vector<Slot> slots_;
  std::uint16_t gathering_ = 0;
};
static_assert(kRoundSlots <= 16, "one bit per slot in Tree::gathering()");

}  // namespace gradplane::aggregate
