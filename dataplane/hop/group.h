// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/base/bitmap.h"
#include "dataplane/base/time.h"
#include "dataplane/hop/edge.h"
#include "dataplane/model/geometry.h"
#include "dataplane/model/group_name.h"
#include "dataplane/model/limits.h"

namespace gradplane::hop {

/// So often a member has not answered for long after blocks to the group, without one in between
/// that came: from there on the network copies nothing for it.
inline constexpr std::uint32_t kDeafAfter = 4;
/// Of so many blocks to the group a member may lose an eighth.
inline constexpr std::uint32_t kGroupLossStretch = 256;
/// How often a group is tried while receivers of it hear nothing. The time doubles up to the
/// second, while nobody new hears it.
inline constexpr Duration kFirstGroupTrial = Duration::ms(100);
inline constexpr Duration kMaxGroupTrial = Duration::seconds(10);
/// A trial waits for so long until all who do not hear the group take blocks.
inline constexpr Duration kTrialPatience = Duration::ms(100);
/// An echo is older than all after so long: the clock in packets has gone round.
inline constexpr Duration kEchoLifetime = Duration::seconds(600);
/// A member keeps the others waiting for so long at a stretch, or four of its round trips.
inline constexpr Duration kGroupPatience = Duration::ms(20);
/// A round's first block waits for so long, or two round trips, until every member takes blocks:
/// those who do not yet when it goes listen to the rest.
inline constexpr Duration kHeldPatience = Duration::ms(5);
/// A round says who is slow when so many of its blocks have gone to the group.
inline constexpr std::uint32_t kGroupWarmUp = 64;
/// For how many rounds a member that was too slow, or lost too much, is none. The number doubles up
/// to the second, and begins anew after as many rounds in the group.
inline constexpr std::uint32_t kFirstGroupRest = 4;
inline constexpr std::uint32_t kMaxGroupRest = 256;

/// A receiver of packets to a group, and what is known of it.
struct GroupMember {
  OutEdge* edge = nullptr;           // over which blocks go to it alone
  bool hears = false;                // the network copies for it
  std::uint32_t newest_echo_us = 0;  // when the newest packet to the group left that has come to it
  Instant heard_at = Instant::from_ns(INT64_MIN / 4);  // when an ack told so
  std::uint32_t unanswered = 0;                        // see kDeafAfter
  std::uint32_t sent = 0;                              // blocks to it by the group, of late
  std::uint32_t lost = 0;                              // of them
  std::uint32_t rests = 0;  // for so many rounds it gets its blocks alone
  std::uint32_t next_rest = 0;
  std::uint32_t rounds = 0;  // in a row in which it was a member
  /// Slots of rounds that it had not begun when the first block of them went to the group.
  std::uint16_t late = 0;
  /// By slot: the others have room for the next block of the round, and it has none.
  std::array<Instant, kRoundSlots> waited_for_since = for_nobody();

  static constexpr std::array<Instant, kRoundSlots> for_nobody() {
    std::array<Instant, kRoundSlots> since{};
    since.fill(Instant::never());
    return since;
  }
};

/// Nodes that get the same blocks from this one, as receivers of packets that the network copies:
/// the results of a tree for its children, or an update for its receivers. New blocks go to the
/// group once, to those that hear it. What a member has lost goes to it alone, and so does
/// everything to a receiver that hears nothing. A receiver that hears but is too slow for the
/// others listens: the group goes on without it, what comes to it comes, and the rest goes to it
/// alone when the group has sent the round. Those who begin a round late listen as well. The group
/// sends what they lack once more when all others have it.
///
/// The edges to the receivers may be of several trees. In each round of the group they carry the
/// same range of blocks.
///
/// That the network copies is never assumed: now and then a block goes to the group and also to
/// each receiver alone, and a receiver's ack tells which of the two has come.
class Group {
 public:
  struct Config {
    std::size_t max_blocks = 0;                            // of a round
    std::uint8_t tree = 0;                                 // that its packets name
    std::optional<std::uint8_t> selection = std::nullopt;  // see GroupName
  };
  /// The edges outlive the group, and never move.
  Group(const Config& config, std::span<OutEdge* const> receivers);

  std::uint8_t tree() const { return config_.tree; }
  std::optional<std::uint8_t> selection() const { return config_.selection; }
  std::span<GroupMember> members() { return members_; }
  std::span<const GroupMember> members() const { return members_; }

  /// The round of `slot` begins with the blocks of `range`, in the order that its edges have. Its
  /// edges are open. `critical` (by block; nullptr: all alike) contains the blocks that go first;
  /// it is only read during this call.
  void open(std::size_t slot, BlockRange range, std::uint32_t rotation,
            const Bitmap* critical = nullptr);
  /// Nothing of the round goes to the group any more.
  void stop(std::size_t slot);
  /// The round is over.
  void end(std::size_t slot);
  /// The block is final. It was offered to the edges.
  void offer(std::size_t slot, std::uint32_t block);
  void offer_all(std::size_t slot);
  /// Slots with blocks for the group, one bit each.
  std::uint16_t queued() const { return queued_; }
  /// The block that goes to the group next; nothing when no member needs one that is here.
  std::optional<std::uint32_t> next(std::size_t slot);
  /// What has not come to those who listen to the round goes to them alone from now on. Who has not
  /// begun it may still hear the group, while that has not sent the round.
  void release_listeners(std::size_t slot);
  /// Until when the first block of the round waits for members that are held; the past if it does
  /// not. `round_trip`: the longest to one of them.
  Instant waits_until(std::size_t slot, Duration round_trip) const;
  /// Some member takes blocks of the round. `waits_for_late`: nobody can end the round before all
  /// have begun it, so it also waits for those who still get an older round from here.
  void on_may_begin(std::size_t slot, bool waits_for_late, Instant now);
  /// It goes now: what it is to each receiver. True for those to which it counts as in flight.
  static bool on_sent_to(GroupMember& member, std::size_t slot, std::uint32_t block,
                         std::uint32_t now_us);
  /// It has gone.
  void on_sent(std::size_t slot, std::uint32_t block);
  BlockRange range(std::size_t slot) const { return slots_[slot].range; }
  /// How many blocks of the round have gone to the group.
  std::uint32_t sent(std::size_t slot) const { return slots_[slot].sent; }
  /// Blocks of the round that are here and have not gone to the group.
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
  /// The block with which the group is tried next; nothing when every receiver hears it, or nobody
  /// who does not would answer.
  std::optional<Trial> trial() const;
  /// A first trial, or one after somebody has gone deaf, is due from now on.
  void begin_trials(Instant now) {
    if (next_trial_ == Instant()) next_trial_ = now;
  }
  /// When it may be tried: a little later than it is due where somebody who does not hear it takes
  /// no blocks of the round yet.
  Instant trial_time() const;
  Instant next_trial() const { return next_trial_; }
  /// The group is tried now.
  void on_trial(Instant now);

  /// An ack of the member has told of a packet to the group that was sent at `sent_us`.
  void on_heard(GroupMember& member, std::uint32_t sent_us, Instant now);
  /// The member has lost blocks that had gone to the group, as a later one that came has shown.
  void on_lost(GroupMember& member, std::uint32_t blocks);
  /// Blocks have gone to the group, and for long the member has not answered.
  void on_unanswered(GroupMember& member);
  /// The member has no room for the round's next block, and others have. `is_slow`: it can take
  /// less than half of what they can. `round_trip`: without queues, or a slow member would make
  /// patience with itself. True when it only listens from now on.
  bool on_waited_for(GroupMember& member, std::size_t slot, Duration round_trip, bool is_slow,
                     Instant now);
  /// The round waits for no member: all have room, or a block goes.
  void on_room(std::size_t slot) {
    for (GroupMember& member : members_) member.waited_for_since[slot] = Instant::never();
  }
  static Duration patience_with(Duration round_trip) {
    return std::max(kGroupPatience, round_trip * 4);
  }

 private:
  struct Slot {
    BlockRange range;
    std::optional<std::uint32_t> last = {};  // the block that came last
    std::uint64_t last_offer = 0;            // and its number among all that came
    Bitmap ready;     // by number in the range: what is here and has not gone to the group
    Bitmap critical;  // by number in the range: what goes first
    std::uint32_t ready_count = 0;
    std::uint32_t critical_count = 0;
    std::uint32_t sent = 0;
    std::size_t cursor = 0;
    Instant may_begin_at = Instant::never();
    bool is_on = false;     // it has members
    bool is_again = false;  // who was late gets what the others have
  };
  std::size_t answers(std::size_t slot) const;
  std::size_t deaf() const;
  static std::size_t choose(const Slot& slot);
  void take_ready(std::size_t slot, std::uint32_t block);
  bool begin_again(std::size_t slot);
  bool is_needed(std::size_t slot, std::uint32_t block) const;
  void listen(GroupMember& member);
  void leave(GroupMember& member, std::size_t slot, BlockSender::Way way) const;

  Config config_;
  std::vector<GroupMember> members_;
  std::vector<Slot> slots_;
  std::uint16_t queued_ = 0;
  std::uint64_t offers_ = 0;
  Instant next_trial_ = {};
  Duration trial_pause_ = kFirstGroupTrial;
};

/// Whether the edge's peer is to get new blocks of the round by its group, and takes them.
inline bool is_group_member(const OutEdge& edge, std::size_t slot) {
  const BlockSender& sender = edge.senders[slot];
  return sender.way() == BlockSender::Way::kMember && !sender.settled() &&
         (edge.held & OutEdge::bit(slot)) == 0;
}

/// The same, and it has not been sent all that is here: in the second part of a round only those
/// lack something who were late.
inline bool lacks_group_block(const OutEdge& edge, std::size_t slot) {
  return is_group_member(edge, slot) && edge.senders[slot].left_to_group() > 0;
}

/// Whether the edge's peer is to get new blocks of the round by its group, and does not take them
/// yet.
inline bool is_held_member(const OutEdge& edge, std::size_t slot) {
  return edge.senders[slot].way() == BlockSender::Way::kMember &&
         (edge.held & OutEdge::bit(slot)) != 0;
}

}  // namespace gradplane::hop
