// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/hop/group.h"

#include "dataplane/hop/clock.h"

namespace gradplane::hop {
namespace {

using Way = BlockSender::Way;

void set_way(OutEdge& child, std::size_t slot, Way way) {
  child.senders[slot].set_way(way);
  child.refresh(slot);
}

bool may_join(const OutEdge& child) {
  return child.member.hears && child.member.rests == 0;
}

/// In every open round in which it is a member.
void listen(OutEdge& child) {
  GroupMember& member = child.member;
  member.rests = std::max(member.next_rest, kFirstGroupRest);
  member.next_rest = std::min(member.rests * 2, kMaxGroupRest);
  member.waited_for_since = Instant::never();
  for (std::size_t slot = 0; slot < kRoundSlots; ++slot) {
    if (child.senders[slot].way() == Way::kMember) set_way(child, slot, Way::kListener);
  }
}

void on_round(GroupMember& member, bool is_member) {
  if (member.rests > 0) --member.rests;
  member.rounds = is_member ? member.rounds + 1 : 0;
  if (member.rounds >= kMaxGroupRest) member.next_rest = kFirstGroupRest;
}

/// What has not come to those who listen goes to them alone.
void release_listeners(std::size_t slot, std::span<OutEdge> children) {
  for (OutEdge& child : children) {
    if (child.senders[slot].way() == Way::kListener) set_way(child, slot, Way::kAlone);
  }
}

/// How a round begins for a child, where the round has members.
Way first_way(const OutEdge& child) {
  if (may_join(child)) return Way::kMember;
  return child.member.hears ? Way::kListener : Way::kAlone;
}

}  // namespace

Group::Group(std::size_t max_blocks) {
  slots_.reserve(kRoundSlots);
  for (std::size_t slot = 0; slot < kRoundSlots; ++slot)
    slots_.push_back({.range = {}, .ready = Bitmap(max_blocks)});
}

void Group::open(std::size_t slot, BlockRange range, std::uint32_t rotation,
                 std::span<OutEdge> children) {
  stop(slot, children);
  Slot& own = slots_[slot];
  own.range = range;
  own.ready.reset(range.size());
  own.sent = 0;
  own.may_begin_at = Instant::never();
  own.cursor = range.size() == 0 ? 0 : rotation % range.size();
  const auto members = std::count_if(children.begin(), children.end(), may_join);
  own.is_on = static_cast<std::size_t>(members) >= kMinGroupMembers;
  for (OutEdge& child : children) {
    set_way(child, slot, own.is_on ? first_way(child) : Way::kAlone);
    on_round(child.member, own.is_on && may_join(child));
  }
}

void Group::stop(std::size_t slot, std::span<OutEdge> children) {
  if (last_ && last_->slot == slot) last_.reset();
  slots_[slot].ready_count = 0;
  slots_[slot].is_on = false;
  queued_ = static_cast<std::uint16_t>(queued_ & ~OutEdge::bit(slot));
  for (OutEdge& child : children) set_way(child, slot, Way::kAlone);
}

void Group::offer(std::size_t slot, std::uint32_t block) {
  Slot& own = slots_[slot];
  last_ = Trial{.slot = slot, .block = block};
  if (!own.is_on) return;
  own.ready.set(block - own.range.begin);
  ++own.ready_count;
  queued_ = static_cast<std::uint16_t>(queued_ | OutEdge::bit(slot));
}

std::optional<std::uint32_t> Group::next(std::size_t slot, std::span<OutEdge> children) {
  Slot& own = slots_[slot];
  const bool has_members =
      std::any_of(children.begin(), children.end(), [slot](const OutEdge& child) {
        return child.senders[slot].way() == Way::kMember && !child.senders[slot].settled();
      });
  if (!has_members) {  // all have left: whoever listens would wait for nothing
    stop(slot, children);
    return std::nullopt;
  }
  while (own.ready_count > 0) {
    std::size_t i = own.ready.next_set(own.cursor);
    if (i == Bitmap::kNone) i = own.ready.next_set(0);
    const std::uint32_t block = own.range.begin + static_cast<std::uint32_t>(i);
    const bool is_needed =
        std::any_of(children.begin(), children.end(), [slot, block](const OutEdge& child) {
          const BlockSender& sender = child.senders[slot];
          return sender.way() == Way::kMember && sender.is_new(block);
        });
    if (is_needed) return block;
    on_sent(slot, block, children);
  }
  return std::nullopt;
}

void Group::on_all_held(std::size_t slot, std::span<OutEdge> children) {
  release_listeners(slot, children);
}

Instant Group::waits_until(std::size_t slot, std::span<const OutEdge> children,
                           Duration round_trip) const {
  const Slot& own = slots_[slot];
  const bool any_held = std::any_of(children.begin(), children.end(), [slot](const OutEdge& child) {
    return child.senders[slot].way() == Way::kMember && (child.held & OutEdge::bit(slot)) != 0;
  });
  if (own.sent > 0 || !any_held || own.may_begin_at == Instant::never()) return {};
  return own.may_begin_at + std::max(kHeldPatience, round_trip * 2);
}

bool Group::on_sent_to(OutEdge& child, std::size_t slot, std::uint32_t block,
                       std::uint32_t now_us) {
  // Who has not begun the round drops the block. When it has begun, it listens to the rest.
  const bool is_held = (child.held & OutEdge::bit(slot)) != 0;
  if (is_held && child.senders[slot].way() == Way::kMember)
    child.senders[slot].set_way(Way::kListener);
  const bool is_taken = child.senders[slot].on_group_sent(block, now_us);
  child.refresh(slot);
  if (is_taken) ++child.member.sent;
  return is_taken;
}

void Group::take_ready(std::size_t slot, std::uint32_t block) {
  Slot& own = slots_[slot];
  const std::size_t i = block - own.range.begin;
  if (!own.is_on || !own.ready.test(i)) return;
  own.ready.clear(i);
  --own.ready_count;
  ++own.sent;
  own.cursor = i + 1;
  if (own.ready_count == 0) queued_ = static_cast<std::uint16_t>(queued_ & ~OutEdge::bit(slot));
}

void Group::on_sent(std::size_t slot, std::uint32_t block, std::span<OutEdge> children) {
  take_ready(slot, block);
  if (all_sent(slot)) release_listeners(slot, children);
}

std::optional<Group::Trial> Group::trial(std::span<const OutEdge> children) const {
  if (!last_) return std::nullopt;
  const bool any_answers =
      std::any_of(children.begin(), children.end(), [this](const OutEdge& child) {
        return !child.member.hears && (child.held & OutEdge::bit(last_->slot)) == 0 &&
               !child.senders[last_->slot].is_acked(last_->block);
      });
  return any_answers ? last_ : std::nullopt;
}

Instant Group::trial_time(std::span<const OutEdge> children) const {
  if (next_trial_ == Instant() || !trial(children)) return Instant::never();
  const bool any_held = std::any_of(children.begin(), children.end(), [this](const OutEdge& child) {
    return !child.member.hears && (child.held & OutEdge::bit(last_->slot)) != 0;
  });
  return any_held ? next_trial_ + kTrialPatience : next_trial_;
}

void Group::on_trial(Instant now) {
  next_trial_ = now + trial_pause_;
  trial_pause_ = std::min(trial_pause_ * 2, kMaxGroupTrial);
  last_.reset();
}

void Group::on_heard(OutEdge& child, std::uint32_t sent_us, Instant now) {
  GroupMember& member = child.member;
  const bool is_known = now - member.heard_at < kEchoLifetime;
  if (is_known && !before_us(member.newest_echo_us, sent_us)) return;
  member.newest_echo_us = sent_us;
  member.heard_at = now;
  if (!member.hears) {  // others may follow
    trial_pause_ = kFirstGroupTrial;
    next_trial_ = std::min(next_trial_, now + trial_pause_);
  }
  member.hears = true;
  member.lost_in_a_row = 0;
}

void Group::on_lost(OutEdge& child, std::uint32_t blocks) {
  GroupMember& member = child.member;
  member.lost_in_a_row += blocks;
  member.lost += blocks;
  if (!member.hears) return;
  if (member.lost_in_a_row >= kDeafAfter) {
    member.hears = false;
    member.waited_for_since = Instant::never();
    ++went_deaf_;
    for (std::size_t slot = 0; slot < kRoundSlots; ++slot) set_way(child, slot, Way::kAlone);
    next_trial_ = {};
    trial_pause_ = kFirstGroupTrial;
  } else if (member.sent >= kGroupLossStretch) {
    if (member.lost * 8 > member.sent) listen(child);
    member.sent = member.lost = 0;
  }
}

bool Group::on_waited_for(OutEdge& child, Duration round_trip, bool is_slow, Instant now) {
  GroupMember& member = child.member;
  if (member.waited_for_since == Instant::never()) member.waited_for_since = now;
  if (!is_slow && now - member.waited_for_since < patience_with(round_trip)) return false;
  listen(child);
  return true;
}

}  // namespace gradplane::hop
