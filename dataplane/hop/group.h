// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/base/bitmap.h"
#include "dataplane/base/time.h"
#include "dataplane/hop/edge.h"
#include "dataplane/model/geometry.h"
#include "dataplane/model/limits.h"

namespace gradplane::hop {

/// A group of fewer children is not worth it: a single one gets what goes to it alone.
inline constexpr std::size_t kMinGroupMembers = 2;
/// Blocks to the group that a member has lost without one in between that came: from there on the
/// network copies nothing for it.
inline constexpr std::uint32_t kDeafAfter = 64;
/// A block that was the only one on its way, and that nobody answered, counts as so many.
inline constexpr std::uint32_t kUnansweredCounts = 16;
/// Of so many blocks to the group a member may lose an eighth.
inline constexpr std::uint32_t kGroupLossStretch = 256;
/// How often a group is tried while children of it hear nothing. The time doubles up to the second,
/// while nobody new hears it.
inline constexpr Duration kFirstGroupTrial = Duration::ms(100);
inline constexpr Duration kMaxGroupTrial = Duration::seconds(10);
/// A trial waits for so long until all who do not hear the group take results.
inline constexpr Duration kTrialPatience = Duration::ms(100);
/// An echo is older than all after so long: the clock in packets has gone round.
inline constexpr Duration kEchoLifetime = Duration::seconds(600);
/// A member keeps the others waiting for so long at a stretch, or four of its round trips.
inline constexpr Duration kGroupPatience = Duration::ms(20);
/// A round's first block waits for so long, or two round trips, until every member takes results:
/// those who do not yet when it goes listen to the rest.
inline constexpr Duration kHeldPatience = Duration::ms(5);
/// A round says who is slow when so many of its blocks have gone to the group.
inline constexpr std::uint32_t kGroupWarmUp = 64;
/// For how many rounds a member that was too slow, or lost too much, is none. The number doubles up
/// to the second, and begins anew after as many rounds in the group.
inline constexpr std::uint32_t kFirstGroupRest = 4;
inline constexpr std::uint32_t kMaxGroupRest = 256;

/// The children of a node in one tree, as receivers of packets that the network copies. Results go
/// to the group once, to those that hear it. What a member has lost goes to it alone, and so does
/// everything to a child that hears nothing. A child that hears but is too slow for the others
/// listens: the group goes on without it, what comes to it comes, and the rest goes to it alone
/// when the group has sent the round.
///
/// That the network copies is never assumed: now and then a result goes to the group and also to
/// each child alone, and a child's ack tells which of the two has come.
///
/// `children` are always the edges of all children, in the same order.
class Group {
 public:
  /// A round has up to `max_blocks` blocks.
  explicit Group(std::size_t max_blocks);

  /// The round of `slot` begins with the blocks of `range`, in the order that its edges have. Its
  /// edges are open.
  void open(std::size_t slot, BlockRange range, std::uint32_t rotation,
            std::span<OutEdge> children);
  /// Nothing of the round goes to the group any more.
  void stop(std::size_t slot, std::span<OutEdge> children);
  /// The result of a block is final. It was offered to the edges.
  void offer(std::size_t slot, std::uint32_t block);
  /// Slots with results for the group, one bit each.
  std::uint16_t queued() const { return queued_; }
  /// The block that goes to the group next; nothing when no member needs one that is here.
  std::optional<std::uint32_t> next(std::size_t slot, std::span<OutEdge> children);
  /// All members of the round are held. Who listens to it gets its results alone.
  static void on_all_held(std::size_t slot, std::span<OutEdge> children);
  /// Until when the first block of the round waits for members that are held; the past if it does
  /// not. `round_trip`: the longest to one of them.
  Instant waits_until(std::size_t slot, std::span<const OutEdge> children,
                      Duration round_trip) const;
  /// Some member takes results of the round.
  void on_may_begin(std::size_t slot, Instant now) {
    if (slots_[slot].may_begin_at == Instant::never()) slots_[slot].may_begin_at = now;
  }
  /// It goes now: what it is to each child. True for those to which it counts as in flight.
  bool on_sent_to(OutEdge& child, std::size_t slot, std::uint32_t block, std::uint32_t now_us);
  /// It has gone.
  void on_sent(std::size_t slot, std::uint32_t block, std::span<OutEdge> children);
  /// How many blocks of the round have gone to the group.
  std::uint32_t sent(std::size_t slot) const { return slots_[slot].sent; }
  /// Results of the round that are here and have not gone to the group.
  std::uint32_t ready(std::size_t slot) const { return slots_[slot].ready_count; }
  /// Every block of the round has gone to the group.
  bool all_sent(std::size_t slot) const {
    const Slot& own = slots_[slot];
    return own.sent == own.range.size();
  }

  struct Trial {
    std::size_t slot = 0;
    std::uint32_t block = 0;
  };
  /// The result with which the group is tried next; nothing when every child hears it, or nobody
  /// who does not would answer.
  std::optional<Trial> trial(std::span<const OutEdge> children) const;
  /// A first trial, or one after somebody has gone deaf, is due from now on.
  void begin_trials(Instant now) {
    if (next_trial_ == Instant()) next_trial_ = now;
  }
  /// When it may be tried: a little later than it is due where somebody who does not hear it takes
  /// no results of the round yet.
  Instant trial_time(std::span<const OutEdge> children) const;
  Instant next_trial() const { return next_trial_; }
  /// The group is tried now.
  void on_trial(Instant now);

  /// An ack of the child has told of a packet to the group that was sent at `sent_us`.
  void on_heard(OutEdge& child, std::uint32_t sent_us, Instant now);
  /// The child has lost blocks that had gone to the group.
  void on_lost(OutEdge& child, std::uint32_t blocks);
  /// The member has no room for the next block, and others have. `is_slow`: it can take less than
  /// half of what they can. True when it only listens from now on.
  static bool on_waited_for(OutEdge& child, Duration round_trip, bool is_slow, Instant now);
  static Duration patience_with(Duration round_trip) {
    return std::max(kGroupPatience, round_trip * 4);
  }

  /// The number of the next packet to the group.
  std::uint64_t next_number() { return ++packets_sent_; }
  std::uint64_t went_deaf() const { return went_deaf_; }

 private:
  struct Slot {
    BlockRange range;
    Bitmap ready;  // by number in the range: results that have not gone to the group
    std::uint32_t ready_count = 0;
    std::uint32_t sent = 0;
    std::size_t cursor = 0;
    Instant may_begin_at = Instant::never();
    bool is_on = false;  // it has members
  };
  void take_ready(std::size_t slot, std::uint32_t block);

  std::vector<Slot> slots_;
  std::uint16_t queued_ = 0;
  std::uint64_t packets_sent_ = 0;
  std::uint64_t went_deaf_ = 0;
  std::optional<Trial> last_;  // the result that came last
  Instant next_trial_ = {};
  Duration trial_pause_ = kFirstGroupTrial;
};

/// Whether the edge's peer is to get new blocks of the round by the group, and takes results of it.
inline bool is_group_member(const OutEdge& edge, std::size_t slot) {
  const BlockSender& sender = edge.senders[slot];
  return sender.way() == BlockSender::Way::kMember && !sender.settled() &&
         (edge.held & OutEdge::bit(slot)) == 0;
}

}  // namespace gradplane::hop
