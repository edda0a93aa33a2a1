// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/hop/group.h"

#include <algorithm>

namespace gradplane::hop {
namespace {

/// In every round that is open.
void get_alone(OutEdge& child) {
  for (std::size_t slot = 0; slot < kRoundSlots; ++slot) {
    child.senders[slot].leave_new_to_group(false);
    child.refresh(slot);
  }
  child.member.waited_for_since = Instant::never();
}

bool may_join(const OutEdge& child) {
  return child.member.hears && child.member.rests == 0;
}

void on_round(GroupMember& member, bool is_member) {
  if (member.rests > 0) --member.rests;
  member.rounds = is_member ? member.rounds + 1 : 0;
  if (member.rounds >= kMaxGroupRest) member.next_rest = kFirstGroupRest;
}

}  // namespace

Group::Group(std::size_t max_blocks) {
  slots_.reserve(kRoundSlots);
  for (std::size_t slot = 0; slot < kRoundSlots; ++slot)
    slots_.push_back({.range = {}, .ready = Bitmap(max_blocks)});
}

void Group::open(std::size_t slot, BlockRange range, std::uint32_t rotation,
                 std::span<OutEdge> children) {
  stop(slot);
  Slot& own = slots_[slot];
  own.range = range;
  own.ready.reset(range.size());
  own.sent = 0;
  own.cursor = range.size() == 0 ? 0 : rotation % range.size();
  const auto members = std::count_if(children.begin(), children.end(), may_join);
  own.is_on = static_cast<std::size_t>(members) >= kMinGroupMembers;
  for (OutEdge& child : children) {
    const bool is_member = own.is_on && may_join(child);
    child.senders[slot].leave_new_to_group(is_member);
    on_round(child.member, is_member);
  }
}

void Group::stop(std::size_t slot) {
  if (last_ && last_->slot == slot) last_.reset();
  slots_[slot].ready_count = 0;
  slots_[slot].is_on = false;
  queued_ = static_cast<std::uint16_t>(queued_ & ~OutEdge::bit(slot));
}

void Group::offer(std::size_t slot, std::uint32_t block) {
  Slot& own = slots_[slot];
  last_ = Trial{.slot = slot, .block = block};
  if (!own.is_on) return;
  own.ready.set(block - own.range.begin);
  ++own.ready_count;
  queued_ = static_cast<std::uint16_t>(queued_ | OutEdge::bit(slot));
}

std::optional<std::uint32_t> Group::next(std::size_t slot, std::span<const OutEdge> children) {
  Slot& own = slots_[slot];
  while (own.ready_count > 0) {
    std::size_t i = own.ready.next_set(own.cursor);
    if (i == Bitmap::kNone) i = own.ready.next_set(0);
    const std::uint32_t block = own.range.begin + static_cast<std::uint32_t>(i);
    const bool is_needed =
        std::any_of(children.begin(), children.end(), [slot, block](const OutEdge& child) {
          const BlockSender& sender = child.senders[slot];
          return sender.is_in_group() && sender.is_new(block);
        });
    if (is_needed) return block;
    on_sent(slot, block);
  }
  return std::nullopt;
}

void Group::on_sent(std::size_t slot, std::uint32_t block) {
  Slot& own = slots_[slot];
  const std::size_t i = block - own.range.begin;
  if (!own.is_on || !own.ready.test(i)) return;
  own.ready.clear(i);
  --own.ready_count;
  ++own.sent;
  own.cursor = i + 1;
  if (own.ready_count == 0) queued_ = static_cast<std::uint16_t>(queued_ & ~OutEdge::bit(slot));
}

Instant Group::next_trial(std::span<const OutEdge> children) const {
  if (!last_) return Instant::never();
  const bool all_hear = std::all_of(children.begin(), children.end(),
                                    [](const OutEdge& child) { return child.member.hears; });
  return all_hear ? Instant::never() : next_trial_;
}

Group::Trial Group::trial(Instant now) {
  next_trial_ = now + trial_pause_;
  trial_pause_ = std::min(trial_pause_ * 2, kMaxGroupTrial);
  const Trial trial = *last_;
  last_.reset();
  return trial;
}

void Group::on_heard(OutEdge& child, std::uint32_t sent_us) {
  GroupMember& member = child.member;
  if (member.was_heard && !before_us(member.newest_echo_us, sent_us)) return;
  member.newest_echo_us = sent_us;
  member.was_heard = true;
  member.hears = true;
  member.lost_in_a_row = 0;
}

void Group::on_lost(OutEdge& child, std::uint32_t blocks) {
  GroupMember& member = child.member;
  member.lost_in_a_row += blocks;
  if (!member.hears || member.lost_in_a_row < kDeafAfter) return;
  member.hears = false;
  get_alone(child);
  trial_pause_ = kFirstGroupTrial;
}

bool Group::on_waited_for(OutEdge& child, Duration round_trip, bool is_slow, Instant now) {
  GroupMember& member = child.member;
  if (member.waited_for_since == Instant::never()) member.waited_for_since = now;
  if (!is_slow && now - member.waited_for_since < patience_with(round_trip)) return false;
  member.rests = std::max(member.next_rest, kFirstGroupRest);
  member.next_rest = std::min(member.rests * 2, kMaxGroupRest);
  get_alone(child);
  return true;
}

}  // namespace gradplane::hop
