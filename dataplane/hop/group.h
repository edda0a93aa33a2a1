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

/// A member is deaf after this many probes of blocks to the group in a row, if no packet to the
/// group has reached it meanwhile: the network then delivers nothing of the group to it.
inline constexpr std::uint32_t kDeafAfter = 4;
/// After at least this many blocks by the group, a member that has lost more than an eighth of them
/// becomes a listener.
inline constexpr std::uint32_t kGroupLossStretch = 256;
/// The interval between trials of a group while some receivers do not hear it. It doubles up to the
/// second value as long as no further receiver hears the group.
inline constexpr Duration kFirstGroupTrial = Duration::ms(100);
inline constexpr Duration kMaxGroupTrial = Duration::seconds(10);
/// The longest time for which a trial waits until all receivers that do not hear the group take
/// blocks.
inline constexpr Duration kTrialPatience = Duration::ms(100);
/// After this time an echo counts as older than any other, because the clock in packets wraps.
inline constexpr Duration kEchoLifetime = Duration::seconds(600);
/// The longest time for which a member may keep the others waiting, or four of its round trips if
/// that is longer.
inline constexpr Duration kGroupPatience = Duration::ms(20);
/// The longest time for which a round's first block waits until every member takes blocks, or two
/// round trips if that is longer. Members that do not take blocks when it is sent become listeners.
inline constexpr Duration kHeldPatience = Duration::ms(5);
/// A member can count as slow only after this many blocks of the round have gone to the group.
inline constexpr std::uint32_t kGroupWarmUp = 64;
/// The number of rounds for which a member that was too slow, or lost too much, is only a listener.
/// It doubles up to the second value. After kMaxGroupRest rounds in a row as a member, it starts
/// again at kFirstGroupRest.
inline constexpr std::uint32_t kFirstGroupRest = 4;
inline constexpr std::uint32_t kMaxGroupRest = 256;

/// A receiver of packets to a group, and its state.
struct GroupMember {
  OutEdge* edge = nullptr;  // the edge on which blocks go to it alone
  bool hears = false;       // the network delivers the group's packets to it
  // Sending time of the newest packet to the group that has reached it.
  std::uint32_t newest_echo_us = 0;
  Instant heard_at = Instant::from_ns(INT64_MIN / 4);  // when the ack of that packet came
  std::uint32_t unanswered = 0;                        // see kDeafAfter
  std::uint32_t sent = 0;   // blocks sent to it by the group since `lost` was last checked
  std::uint32_t lost = 0;   // of these
  std::uint32_t rests = 0;  // further rounds in which it is no member
  std::uint32_t next_rest = 0;
  std::uint32_t rounds = 0;  // consecutive rounds in which it was a member
  /// Slots of rounds that it had not begun when their first block went to the group.
  std::uint16_t late = 0;
  /// By slot: since when others have had room for the round's next block while this member has had
  /// none; never() if they do not wait.
  std::array<Instant, kRoundSlots> waited_for_since = for_nobody();

  static constexpr std::array<Instant, kRoundSlots> for_nobody() {
    std::array<Instant, kRoundSlots> since{};
    since.fill(Instant::never());
    return since;
  }
};

/// Nodes that get the same blocks from this node by multicast: the results of a tree for its
/// children, or an update for its receivers. New blocks go to the group once, to the receivers that
/// hear it. Blocks that a member has lost go to it alone, and so do all blocks to a deaf receiver.
///
/// A receiver that hears the group but is too slow for the others becomes a listener. The group
/// does not wait for it. The blocks that do not reach it go to it alone when the group has sent the
/// round. Receivers that begin a round late are listeners as well. When all others have the round,
/// the group sends once more what the late ones lack.
///
/// The edges to the receivers may be of several trees. In each round of the group they carry the
/// same range of blocks.
///
/// A group never assumes that the network delivers its packets. Now and then a block goes to the
/// group and also to each receiver alone, and a receiver's ack tells which of the two has come.
class Group {
 public:
  struct Config {
    std::size_t max_blocks = 0;                            // blocks of the largest round
    std::uint8_t tree = 0;                                 // the tree that its packets name
    std::optional<std::uint8_t> selection = std::nullopt;  // see GroupName
  };
  /// The edges must outlive the group and never move.
  Group(const Config& config, std::span<OutEdge* const> receivers);

  std::uint8_t tree() const { return config_.tree; }
  std::optional<std::uint8_t> selection() const { return config_.selection; }
  std::span<GroupMember> members() { return members_; }
  std::span<const GroupMember> members() const { return members_; }

  /// Begins the round of `slot` with the blocks of `range`, in the same order as on its edges.
  /// These must be open. `critical` (by block; nullptr: all alike) contains the blocks that go
  /// first; it is only read during this call.
  void open(std::size_t slot, BlockRange range, std::uint32_t rotation,
            const Bitmap* critical = nullptr);
  /// No block of the round goes to the group any more.
  void stop(std::size_t slot);
  /// The round is over.
  void end(std::size_t slot);
  /// The block is final, and has been offered to the edges.
  void offer(std::size_t slot, std::uint32_t block);
  void offer_all(std::size_t slot);
  /// Slots with blocks for the group, one bit each.
  std::uint16_t queued() const { return queued_; }
  /// The next block for the group; nothing if no member needs a block that is here.
  std::optional<std::uint32_t> next(std::size_t slot);
  /// From now on, listeners to the round get the blocks that they lack alone. A receiver that has
  /// not begun the round stays a listener until the group has sent all of it.
  void release_listeners(std::size_t slot);
  /// The time until which the round's first block waits for members that are held; a time in the
  /// past if it does not wait. `round_trip`: the longest round trip to one of them.
  Instant waits_until(std::size_t slot, Duration round_trip) const;
  /// Some member takes blocks of the round. `waits_for_late`: nobody can end the round before all
  /// have begun it, so the round also waits for members that still get an older round from this
  /// node.
  void on_may_begin(std::size_t slot, bool waits_for_late, Instant now);
  /// Notes for one receiver that a block goes to the group now. True if the block counts as in
  /// flight to it.
  static bool on_sent_to(GroupMember& member, std::size_t slot, std::uint32_t block,
                         std::uint32_t now_us);
  /// The block has gone to the group.
  void on_sent(std::size_t slot, std::uint32_t block);
  BlockRange range(std::size_t slot) const { return slots_[slot].range; }
  /// How many blocks of the round have gone to the group.
  std::uint32_t sent(std::size_t slot) const { return slots_[slot].sent; }
  /// Blocks of the round that are final and have not gone to the group.
  std::uint32_t ready(std::size_t slot) const { return slots_[slot].ready_count; }
  /// Whether every block of the round has gone to the group.
  bool all_sent(std::size_t slot) const {
    const Slot& own = slots_[slot];
    return own.sent == own.range.size();
  }

  struct Trial {
    std::size_t slot = 0;
    std::uint32_t block = 0;
  };
  /// The block of the next trial; nothing if every receiver hears the group, or if no deaf receiver
  /// would answer.
  std::optional<Trial> trial() const;
  /// Makes a trial due now, if it is the first one, or the first one after a receiver has become
  /// deaf.
  void begin_trials(Instant now) {
    if (next_trial_ == Instant()) next_trial_ = now;
  }
  /// When the next trial may be sent. It waits a little if some deaf receiver takes no blocks of
  /// the round yet.
  Instant trial_time() const;
  Instant next_trial() const { return next_trial_; }
  /// A trial is sent now.
  void on_trial(Instant now);

  /// An ack of the member tells that a packet to the group has come that was sent at `sent_us`.
  void on_heard(GroupMember& member, std::uint32_t sent_us, Instant now);
  /// The member has lost blocks that had gone to the group; a later packet to the group that came
  /// proves it.
  void on_lost(GroupMember& member, std::uint32_t blocks);
  /// The member has not answered blocks to the group for a long time.
  void on_unanswered(GroupMember& member);
  /// The member has no room for the round's next block, and others have. `is_slow`: it can take
  /// less than half of what they can. `round_trip` must not include queues; otherwise a slow member
  /// would extend the time for which others wait for it. True if it becomes a listener.
  bool on_waited_for(GroupMember& member, std::size_t slot, Duration round_trip, bool is_slow,
                     Instant now);
  /// The round waits for no member, because all have room or a block is sent.
  void on_room(std::size_t slot) {
    for (GroupMember& member : members_) member.waited_for_since[slot] = Instant::never();
  }
  static Duration patience_with(Duration round_trip) {
    return std::max(kGroupPatience, round_trip * 4);
  }

 private:
  struct Slot {
    BlockRange range;
    std::optional<std::uint32_t> last = {};  // the last block that was offered
    std::uint64_t last_offer = 0;            // the number of that offer among all offers
    Bitmap ready;  // by number in the range: blocks that are final and have not gone to the group
    Bitmap critical;  // by number in the range: blocks that go first
    std::uint32_t ready_count = 0;
    std::uint32_t critical_count = 0;
    std::uint32_t sent = 0;
    std::size_t cursor = 0;
    Instant may_begin_at = Instant::never();
    bool is_on = false;     // the round has members
    bool is_again = false;  // the second pass has begun, for late receivers
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

/// The same, and it has not been sent all final blocks. In the second pass of a round only late
/// receivers lack blocks.
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
