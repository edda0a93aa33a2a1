// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/hop/group.h"

#include "dataplane/base/assert.h"
#include "dataplane/hop/clock.h"

namespace gradplane::hop {
namespace {

using Way = BlockSender::Way;

void set_way(OutEdge& edge, std::size_t slot, Way way) {
  edge.senders[slot].set_way(way);
  edge.refresh(slot);
}

Way way_of(const GroupMember& member, std::size_t slot) {
  return member.edge->senders[slot].way();
}

bool is_held(const GroupMember& member, std::size_t slot) {
  return (member.edge->held & OutEdge::bit(slot)) != 0;
}

bool may_join(const GroupMember& member) {
  return member.hears && member.rests == 0;
}

void on_round(GroupMember& member, bool is_member) {
  if (member.rests > 0) --member.rests;
  member.rounds = is_member ? member.rounds + 1 : 0;
  if (member.rounds >= kMaxGroupRest) member.next_rest = kFirstGroupRest;
}

/// Whether blocks of an older round than that of `slot` are in flight to the edge's peer, or go
/// next.
bool gets_older_round(const OutEdge& edge, std::size_t slot) {
  for (std::size_t other = 0; other < kRoundSlots; ++other) {
    const unsigned bit = OutEdge::bit(other);
    const bool is_older = static_cast<std::int32_t>(edge.rounds[other] - edge.rounds[slot]) < 0;
    if (!is_older || (edge.held & bit) != 0) continue;
    const bool is_sending = ((edge.queued | edge.waiting) & bit) != 0;
    if (is_sending || edge.senders[other].left_to_group() > 0) return true;
  }
  return false;
}

/// How a receiver begins a round that has members.
Way first_way(const GroupMember& member) {
  if (may_join(member)) return Way::kMember;
  return member.hears ? Way::kListener : Way::kAlone;
}

}  // namespace

Group::Group(const Config& config, std::span<OutEdge* const> receivers) : config_(config) {
  for (OutEdge* edge : receivers) members_.push_back({.edge = edge});
  slots_.reserve(kRoundSlots);
  for (std::size_t slot = 0; slot < kRoundSlots; ++slot) {
    slots_.push_back(
        {.range = {}, .ready = Bitmap(config.max_blocks), .critical = Bitmap(config.max_blocks)});
  }
}

void Group::open(std::size_t slot, BlockRange range, std::uint32_t rotation,
                 const Bitmap* critical) {
  stop(slot);
  on_room(slot);
  Slot& own = slots_[slot];
  own.range = range;
  own.ready.reset(range.size());
  own.critical.reset(range.size());
  own.critical_count = 0;
  std::size_t b = critical != nullptr ? critical->next_set(range.begin) : range.end;
  for (; b < range.end; b = critical->next_set(b + 1)) {
    own.critical.set(b - range.begin);
    ++own.critical_count;
  }
  own.sent = 0;
  own.is_again = false;
  own.may_begin_at = Instant::never();
  own.cursor = range.size() == 0 ? 0 : rotation % range.size();
  const auto joining = std::count_if(members_.begin(), members_.end(), may_join);
  own.is_on = static_cast<std::size_t>(joining) >= kMinGroupMembers;
  for (GroupMember& member : members_) {
    GP_ASSERT(member.edge->senders[slot].range().size() == range.size());
    member.edge->seats[slot] = {this, &member};
    member.late = static_cast<std::uint16_t>(member.late & ~OutEdge::bit(slot));
    set_way(*member.edge, slot, own.is_on ? first_way(member) : Way::kAlone);
    on_round(member, own.is_on && may_join(member));
  }
}

void Group::stop(std::size_t slot) {
  slots_[slot].last.reset();
  slots_[slot].ready_count = 0;
  slots_[slot].is_on = false;
  queued_ = static_cast<std::uint16_t>(queued_ & ~OutEdge::bit(slot));
  for (GroupMember& member : members_) leave(member, slot, Way::kAlone);
}

void Group::end(std::size_t slot) {
  stop(slot);
  for (const GroupMember& member : members_) {
    Seat& seat = member.edge->seats[slot];
    if (seat.group == this) seat = {};
  }
}

/// Sets the way of the receiver's edge, unless another group has the edge in this slot.
void Group::leave(GroupMember& member, std::size_t slot, Way way) const {
  if (member.edge->seats[slot].group == this) set_way(*member.edge, slot, way);
}

/// Makes the member a listener in every open round.
void Group::listen(GroupMember& member) {
  member.rests = std::max(member.next_rest, kFirstGroupRest);
  member.next_rest = std::min(member.rests * 2, kMaxGroupRest);
  member.waited_for_since = GroupMember::for_nobody();
  member.late = 0;
  for (std::size_t slot = 0; slot < kRoundSlots; ++slot) {
    if (way_of(member, slot) == Way::kMember) leave(member, slot, Way::kListener);
  }
}

void Group::offer(std::size_t slot, std::uint32_t block) {
  Slot& own = slots_[slot];
  own.last = block;
  own.last_offer = ++offers_;
  if (!own.is_on) return;
  own.ready.set(block - own.range.begin);
  ++own.ready_count;
  queued_ = static_cast<std::uint16_t>(queued_ | OutEdge::bit(slot));
}

void Group::offer_all(std::size_t slot) {
  const BlockRange range = slots_[slot].range;
  for (std::uint32_t block = range.begin; block < range.end; ++block) offer(slot, block);
}

/// Chooses one of the ready blocks, of which there is at least one. Critical blocks go first, in
/// the same order as on each edge.
std::size_t Group::choose(const Slot& own) {
  std::size_t i = own.critical_count > 0 ? own.critical.next_set(0) : Bitmap::kNone;
  while (i != Bitmap::kNone && !own.ready.test(i)) i = own.critical.next_set(i + 1);
  if (i == Bitmap::kNone) i = own.ready.next_set(own.cursor);
  return i == Bitmap::kNone ? own.ready.next_set(0) : i;
}

/// Whether a member needs the block.
bool Group::is_needed(std::size_t slot, std::uint32_t block) const {
  return std::any_of(members_.begin(), members_.end(), [slot, block](const GroupMember& member) {
    return way_of(member, slot) == Way::kMember && member.edge->senders[slot].is_new(block);
  });
}

std::optional<std::uint32_t> Group::next(std::size_t slot) {
  Slot& own = slots_[slot];
  const bool has_members =
      std::any_of(members_.begin(), members_.end(), [slot](const GroupMember& member) {
        return way_of(member, slot) == Way::kMember && !member.edge->senders[slot].settled();
      });
  if (!has_members) {  // all members have left, so listeners would wait for nothing
    stop(slot);
    return std::nullopt;
  }
  while (own.ready_count > 0) {
    const std::uint32_t block = own.range.begin + static_cast<std::uint32_t>(choose(own));
    if (is_needed(slot, block)) return block;
    on_sent(slot, block);
  }
  return std::nullopt;
}

void Group::release_listeners(std::size_t slot) {
  for (GroupMember& member : members_) {
    if (way_of(member, slot) != Way::kListener) continue;
    if (all_sent(slot) || !is_held(member, slot)) leave(member, slot, Way::kAlone);
  }
}

/// Every block has gone to the group. If enough receivers were late, they become its members now,
/// and the group sends the blocks that some of them lack. This happens once in a round: a second
/// time would serve few.
bool Group::begin_again(std::size_t slot) {
  Slot& own = slots_[slot];
  const auto is_late = [slot](const GroupMember& member) {
    const bool was_late = (member.late & OutEdge::bit(slot)) != 0 && !is_held(member, slot);
    return was_late && way_of(member, slot) == Way::kListener &&
           !member.edge->senders[slot].settled();
  };
  const auto late = std::count_if(members_.begin(), members_.end(), is_late);
  if (own.is_again || static_cast<std::size_t>(late) < kMinGroupMembers) return false;
  own.is_again = true;
  for (GroupMember& member : members_) {
    if (is_late(member)) leave(member, slot, Way::kMember);
  }
  release_listeners(slot);
  for (std::uint32_t block = own.range.begin; block < own.range.end; ++block) {
    if (!is_needed(slot, block)) continue;
    own.ready.set(block - own.range.begin);
    ++own.ready_count;
    --own.sent;
  }
  if (own.ready_count > 0) queued_ = static_cast<std::uint16_t>(queued_ | OutEdge::bit(slot));
  return own.ready_count > 0;
}

void Group::on_may_begin(std::size_t slot, bool waits_for_late, Instant now) {
  Slot& own = slots_[slot];
  const auto is_late = [slot](const GroupMember& member) {
    return is_held_member(*member.edge, slot) && gets_older_round(*member.edge, slot);
  };
  const bool waits =
      waits_for_late && own.sent == 0 && std::any_of(members_.begin(), members_.end(), is_late);
  if (waits || own.may_begin_at == Instant::never()) own.may_begin_at = now;
}

Instant Group::waits_until(std::size_t slot, Duration round_trip) const {
  const Slot& own = slots_[slot];
  const bool any_held =
      std::any_of(members_.begin(), members_.end(),
                  [slot](const GroupMember& member) { return is_held_member(*member.edge, slot); });
  if (own.sent > 0 || !any_held || own.may_begin_at == Instant::never()) return {};
  return own.may_begin_at + std::max(kHeldPatience, round_trip * 2);
}

bool Group::on_sent_to(GroupMember& member, std::size_t slot, std::uint32_t block,
                       std::uint32_t now_us) {
  BlockSender& sender = member.edge->senders[slot];
  // A receiver that has not begun the round drops the block. Once it begins the round, it is a
  // listener.
  if (is_held_member(*member.edge, slot)) {
    sender.set_way(Way::kListener);
    member.late = static_cast<std::uint16_t>(member.late | OutEdge::bit(slot));
  }
  const bool is_taken = sender.on_group_sent(block, now_us);
  member.edge->refresh(slot);
  if (is_taken) ++member.sent;
  return is_taken;
}

void Group::take_ready(std::size_t slot, std::uint32_t block) {
  Slot& own = slots_[slot];
  const std::size_t i = block - own.range.begin;
  if (!own.is_on || !own.ready.test(i)) return;
  own.ready.clear(i);
  --own.ready_count;
  ++own.sent;
  if (own.critical.test(i)) {
    own.critical.clear(i);
    --own.critical_count;
  } else {
    own.cursor = i + 1;
  }
  if (own.ready_count == 0) queued_ = static_cast<std::uint16_t>(queued_ & ~OutEdge::bit(slot));
}

void Group::on_sent(std::size_t slot, std::uint32_t block) {
  take_ready(slot, block);
  if (all_sent(slot) && !begin_again(slot)) release_listeners(slot);
}

std::size_t Group::deaf() const {
  const auto hear = std::count_if(members_.begin(), members_.end(),
                                  [](const GroupMember& member) { return member.hears; });
  return members_.size() - static_cast<std::size_t>(hear);
}

/// The number of deaf receivers that would answer if the group got the last block of the round. A
/// receiver that has been sent the block may have ended the round, and then its ack would tell
/// nothing.
std::size_t Group::answers(std::size_t slot) const {
  const std::optional<std::uint32_t>& block = slots_[slot].last;
  if (!block) return 0;
  const auto answer = [slot, &block](const GroupMember& member) {
    const BlockSender& sender = member.edge->senders[slot];
    return !member.hears && !is_held(member, slot) && sender.is_new(*block);
  };
  return static_cast<std::size_t>(std::count_if(members_.begin(), members_.end(), answer));
}

/// Chooses the round in which most deaf receivers would answer; among equal rounds, the one with
/// the latest block.
std::optional<Group::Trial> Group::trial() const {
  if (deaf() == 0) return std::nullopt;
  std::size_t best = 0;
  std::size_t most = 0;
  for (std::size_t slot = 0; slot < kRoundSlots; ++slot) {
    const std::size_t here = answers(slot);
    const bool is_newer = slots_[slot].last_offer > slots_[best].last_offer;
    if (here > most || (here == most && is_newer)) best = slot;
    most = std::max(most, here);
  }
  if (most == 0) return std::nullopt;
  return Trial{.slot = best, .block = *slots_[best].last};
}

Instant Group::trial_time() const {
  const auto next = next_trial_ == Instant() ? std::nullopt : trial();
  if (!next) return Instant::never();
  return answers(next->slot) < deaf() ? next_trial_ + kTrialPatience : next_trial_;
}

void Group::on_trial(Instant now) {
  next_trial_ = now + trial_pause_;
  trial_pause_ = std::min(trial_pause_ * 2, kMaxGroupTrial);
  for (Slot& slot : slots_) slot.last.reset();
}

void Group::on_heard(GroupMember& member, std::uint32_t sent_us, Instant now) {
  const bool is_known = now - member.heard_at < kEchoLifetime;
  if (is_known && !before_us(member.newest_echo_us, sent_us)) return;
  member.newest_echo_us = sent_us;
  member.heard_at = now;
  if (!member.hears) {  // others may hear it now, too
    trial_pause_ = kFirstGroupTrial;
    next_trial_ = std::min(next_trial_, now + trial_pause_);
  }
  member.hears = true;
  member.unanswered = 0;
}

void Group::on_lost(GroupMember& member, std::uint32_t blocks) {
  member.lost += blocks;
  if (!member.hears || member.sent < kGroupLossStretch) return;
  if (member.lost * 8 > member.sent) listen(member);
  member.sent = member.lost = 0;
}

void Group::on_unanswered(GroupMember& member) {
  if (!member.hears || ++member.unanswered < kDeafAfter) return;
  member.hears = false;
  member.waited_for_since = GroupMember::for_nobody();
  for (std::size_t slot = 0; slot < kRoundSlots; ++slot) leave(member, slot, Way::kAlone);
  next_trial_ = {};
  trial_pause_ = kFirstGroupTrial;
}

bool Group::on_waited_for(GroupMember& member, std::size_t slot, Duration round_trip, bool is_slow,
                          Instant now) {
  Instant& since = member.waited_for_since[slot];
  if (since == Instant::never()) since = now;
  if (!is_slow && now - since < patience_with(round_trip)) return false;
  listen(member);
  return true;
}

}  // namespace gradplane::hop
