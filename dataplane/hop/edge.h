// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/hop/block_receiver.h"
#include "dataplane/hop/block_sender.h"
#include "dataplane/hop/inquiry.h"
#include "dataplane/hop/path.h"
#include "dataplane/hop/replay_window.h"
#include "dataplane/model/ids.h"
#include "dataplane/model/limits.h"
#include "dataplane/wire/envelope.h"

namespace gradplane::hop {

/// A peer's index in PeerTable. Edges and trees name their peers by it.
using PeerIndex = StrongId<struct PeerIndexTag>;
inline constexpr PeerIndex kNoPeer{0xffff};

/// The index of an edge in its tree, in both directions.
using EdgeIndex = StrongId<struct EdgeIndexTag>;
inline constexpr EdgeIndex kNoEdge{0xffff};
static_assert(kMaxNodes <= kNoPeer.index() && kMaxNodes <= kNoEdge.index());

/// Which edge of a job: the plan, the tree, and the edge's index in the tree.
struct EdgeId {
  std::uint32_t epoch = 0;
  std::uint8_t tree = 0;
  EdgeIndex index = {};
};

/// A child as a receiver of packets to the group of all children; see Group.
struct GroupMember {
  bool hears = false;                // the network copies for it
  std::uint32_t newest_echo_us = 0;  // when the newest packet to the group left that has come to it
  Instant heard_at = Instant::from_ns(INT64_MIN / 4);  // when an ack told so
  std::uint32_t lost_in_a_row = 0;                     // blocks to the group, since one has come
  std::uint32_t sent = 0;                              // blocks to it by the group, of late
  std::uint32_t lost = 0;                              // of them
  std::uint32_t rests = 0;  // for so many rounds it gets its results alone
  std::uint32_t next_rest = 0;
  std::uint32_t rounds = 0;                     // in a row in which it was a member
  Instant waited_for_since = Instant::never();  // the others have room, and it has none
};

/// Blocks of one tree on their way to one peer: pushes to the parent, or results to a child. It has
/// one BlockSender for each round slot, and one bit for each slot in `queued`, `waiting` and
/// `held`.
struct OutEdge {
  EdgeId id;
  PeerIndex peer;
  wire::PacketType type = wire::PacketType::kPush;
  std::uint16_t queued = 0;   // slots with blocks that may be sent
  std::uint16_t waiting = 0;  // slots with blocks in flight
  /// Slots of rounds whose results the peer cannot take yet, because it has pushed nothing of them.
  /// Their blocks do not count as queued.
  std::uint16_t held = 0;
  std::vector<BlockSender> senders;
  GroupMember member;         // results: what is known of the peer in the group
  std::vector<Route> routes;  // auxiliary ones to the peer, of this edge's plan
  std::array<std::uint32_t, kRoundSlots> rounds{};  // the round that the slot was last opened for
  std::array<std::uint32_t, kRoundSlots> active_us{};  // when something last went out or was acked
  std::array<std::uint8_t, kRoundSlots> backoff{};     // probes without an answer
  std::uint32_t ended_before = 0;   // results: every round before it has ended below the peer
  Instant ended_at;                 // when that was heard
  Inquiry inquiry;                  // pushes: about rounds that wait for results
  std::uint32_t next_question = 0;  // the block of the range that it names next

  bool is_push() const { return type == wire::PacketType::kPush; }
  static std::uint16_t bit(std::size_t slot) { return static_cast<std::uint16_t>(1U << slot); }

  /// Sets the slot's bits from its sender. Call it after every change of the sender.
  void refresh(std::size_t slot) {
    const BlockSender& sender = senders[slot];
    const bool may_go = sender.has_queued() && (held & bit(slot)) == 0;
    queued = static_cast<std::uint16_t>(may_go ? queued | bit(slot) : queued & ~bit(slot));
    waiting = static_cast<std::uint16_t>(sender.in_flight() > 0 ? waiting | bit(slot)
                                                                : waiting & ~bit(slot));
  }
  void hold(std::size_t slot) { held = static_cast<std::uint16_t>(held | bit(slot)); }
  void release(std::size_t slot) {
    held = static_cast<std::uint16_t>(held & ~bit(slot));
    refresh(slot);
  }
};
static_assert(kRoundSlots <= 16, "one bit per slot in OutEdge::queued, waiting and held");

/// The same blocks, seen by their receiver.
struct InEdge {
  EdgeId id;
  PeerIndex peer;
  wire::PacketType type = wire::PacketType::kPush;
  std::uint16_t ranks = 0;  // pushes: in the child's subtree; results: of the job
  std::vector<BlockReceiver> receivers;
  ReplayWindow group_packets;  // results: of the group that this node is in with other children

  bool is_push() const { return type == wire::PacketType::kPush; }
};

}  // namespace gradplane::hop
