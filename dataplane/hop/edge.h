// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/base/bitmap.h"
#include "dataplane/hop/block_receiver.h"
#include "dataplane/hop/block_sender.h"
#include "dataplane/hop/inquiry.h"
#include "dataplane/hop/parity.h"
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

/// Identifies an edge of a job: the plan, the tree, and the edge's index in the tree.
struct EdgeId {
  std::uint32_t epoch = 0;
  std::uint8_t tree = 0;
  EdgeIndex index = {};
};

class Group;
struct GroupMember;

/// The place of an edge's peer in the group of a round.
struct Seat {
  Group* group = nullptr;  // null: the round's blocks go to the peer alone
  GroupMember* member = nullptr;
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
  /// Slots of rounds whose results the peer cannot take yet, because it has pushed nothing for
  /// them. Their blocks do not count as queued.
  std::uint16_t held = 0;
  std::uint16_t heard = 0;  // slots of rounds for which an ack has come
  std::vector<BlockSender> senders;
  std::array<Seat, kRoundSlots> seats{};
  std::array<Parity*, kRoundSlots> parity{};  // of each slot's round; null if it has none
  std::uint16_t parity_begun = 0;             // slots for which `parity` is decided
  std::vector<Route> routes;                  // auxiliary routes to the peer, of this edge's plan
  std::array<std::uint32_t, kRoundSlots> rounds{};  // the round that the slot was last opened for
  std::array<std::uint32_t, kRoundSlots> active_us{};  // when a block was last sent or acked
  // How often the transmitter has probed or found blocks lost since a block was last acked.
  std::array<std::uint8_t, kRoundSlots> backoff{};
  std::uint32_t ended_before = 0;  // results: every earlier round has ended below the peer
  Instant ended_at;                // when an ack said so
  Inquiry inquiry;                 // pushes: about rounds that wait for results
  std::int64_t silent_looks = 0;   // looks of the watchdog since the last ack, while pushes wait
  // The next question's block, counted from the begin of the range.
  std::uint32_t next_question = 0;
  Bitmap* to_poll = nullptr;  // PeerTable::to_poll() of the job; null before the plan is connected

  bool is_push() const { return type == wire::PacketType::kPush; }
  static std::uint16_t bit(std::size_t slot) { return static_cast<std::uint16_t>(1U << slot); }

  /// Sets the slot's bits from its sender. Call it after every change of the sender.
  void refresh(std::size_t slot) {
    const BlockSender& sender = senders[slot];
    const bool may_go = sender.has_queued() && (held & bit(slot)) == 0;
    queued = static_cast<std::uint16_t>(may_go ? queued | bit(slot) : queued & ~bit(slot));
    waiting = static_cast<std::uint16_t>(sender.in_flight() > 0 ? waiting | bit(slot)
                                                                : waiting & ~bit(slot));
    if (to_poll != nullptr) to_poll->set(peer.index());
  }
  void end_parity(std::size_t slot) {
    ParityTable::release(parity[slot]);
    parity_begun = static_cast<std::uint16_t>(parity_begun & ~bit(slot));
  }
  void hold(std::size_t slot) { held = static_cast<std::uint16_t>(held | bit(slot)); }
  void release(std::size_t slot) {
    held = static_cast<std::uint16_t>(held & ~bit(slot));
    refresh(slot);
  }
};
static_assert(kRoundSlots <= 16, "one bit per slot in OutEdge::queued, waiting and held");

/// A round of a sender that is not in step with this node; see job::Streams.
struct StreamSlot {
  explicit StreamSlot(std::size_t capacity_blocks) : receiver(capacity_blocks) {}

  bool used = false;  // whether the slot has had a round since the plan began
  std::uint32_t round = 0;
  Geometry geometry;
  BlockReceiver receiver;
  bool gathers = false;  // the round may end without some blocks

  bool is_over() const { return receiver.complete() || receiver.closed(); }
  bool is_of(std::uint32_t id) const { return used && round == id; }
};

/// The receiver's side of an edge.
struct InEdge {
  EdgeId id;
  PeerIndex peer;
  wire::PacketType type = wire::PacketType::kPush;
  std::uint16_t ranks = 0;  // pushes: ranks in the child's subtree; results: ranks of the job
  std::vector<BlockReceiver> receivers;
  std::array<Parity*, kRoundSlots> parity{};  // as in OutEdge
  std::vector<StreamSlot> stream;  // pushes to a root under bounded staleness: by round slot
  /// Results: packet numbers of all groups that the parent has in this tree, including groups
  /// without this node.
  ReplayWindow group_packets;

  bool is_push() const { return type == wire::PacketType::kPush; }
};

}  // namespace gradplane::hop
