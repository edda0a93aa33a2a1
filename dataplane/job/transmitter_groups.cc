// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Results and updates that go to groups: which go next, when all members have room, and which
// member is too slow.
#include <algorithm>
#include <bit>

#include "dataplane/hop/clock.h"
#include "dataplane/hop/group.h"
#include "dataplane/job/transmitter.h"
#include "dataplane/wire/seal.h"

namespace gradplane::job {
template <typename Visit>
void Transmitter::for_group_work(Visit visit) const {
  for (const auto& plan : state_.plans.live()) {
    for (hop::Group* group : plan->groups()) {
      for (unsigned bits = group->queued(); bits != 0; bits &= bits - 1) {
        const auto slot = static_cast<std::size_t>(std::countr_zero(bits));
        const auto members = std::as_const(*group).members();
        const bool any = std::any_of(members.begin(), members.end(), [slot](const auto& member) {
          return hop::is_group_member(*member.edge, slot);
        });
        visit(GroupWork{.plan = plan.get(), .group = group, .slot = slot}, any);
      }
    }
  }
}

/// Whether `work` goes before `other`. In the same round that group goes first of
/// which the smaller share is sent.
bool Transmitter::goes_before(const GroupWork& work, const GroupWork& other) const {
  if (work.slot != other.slot) return round_goes_before(work.slot, other.slot);
  const std::uint64_t sent = work.group->sent(work.slot);
  const std::uint64_t sent_of_other = other.group->sent(other.slot);
  return sent * other.group->range(other.slot).size() <
         sent_of_other * work.group->range(work.slot).size();
}

/// When every member that lacks a block has room for the next one. A sounding of a member goes
/// first, back to back.
Instant Transmitter::group_opens(const GroupWork& work) const {
  Instant at;
  Duration longest;
  for (const hop::GroupMember& member : work.group->members()) {
    const hop::Peer& peer = state_.peers[member.edge->peer];
    if (hop::is_held_member(*member.edge, work.slot))
      longest = std::max(longest, peer.flow.min_rtt());
    if (!hop::lacks_group_block(*member.edge, work.slot)) continue;
    if (peer.flow.sounding().is_on()) return Instant::never();
    at = std::max(at, next_send_to(peer));
  }
  return std::max(at, work.group->waits_until(work.slot, longest));
}

bool Transmitter::waits_for_group(const hop::Peer& peer) const {
  return std::any_of(peer.edges.begin(), peer.edges.end(), [](const hop::OutEdge* edge) {
    for (std::size_t slot = 0; slot < kRoundSlots; ++slot) {
      const hop::Group* group = edge->seats[slot].group;
      const bool is_queued = group != nullptr && (group->queued() & hop::OutEdge::bit(slot)) != 0;
      if (is_queued && hop::is_group_member(*edge, slot)) return true;
    }
    return false;
  });
}

std::optional<Outgoing> Transmitter::poll_groups(std::span<std::byte> out, Instant now) {
  if (const auto trial = try_groups(out, now)) return trial;
  GroupWork best;
  for_group_work([&](const GroupWork& work, bool has_members) {
    // Otherwise listeners would wait for a group to which nothing goes.
    if (!has_members) return work.group->release_listeners(work.slot);
    const Operation operation = state_.rounds[work.slot].geometry.operation;
    work.group->on_may_begin(work.slot, !all_contribute(operation), now);
    if (group_opens(work) > now) return look_for_slow_members(work, now);
    work.group->on_room(work.slot);
    if (best.group == nullptr || goes_before(work, best)) best = work;
  });
  if (best.group == nullptr) return std::nullopt;
  const auto block = best.group->next(best.slot);
  if (!block) return std::nullopt;
  group_had_turn_ = true;
  ++state_.counters.blocks_to_groups;
  return write_to_group(best, *block, out, now);
}

/// Sends a due trial. Only a trial shows whether the network delivers to a group.
std::optional<Outgoing> Transmitter::try_groups(std::span<std::byte> out, Instant now) {
  for (const auto& plan : state_.plans.live()) {
    for (hop::Group* group : plan->groups()) {
      group->begin_trials(now);
      if (group->next_trial() > now || group->trial_time() > now) continue;
      const auto trial = group->trial();
      group->on_trial(now);
      ++state_.counters.group_trials;
      return write_to_group({.plan = plan.get(), .group = group, .slot = trial->slot}, trial->block,
                            out, now);
    }
  }
  return std::nullopt;
}

/// Members with room wait for members without. A member becomes a listener if it can take less than
/// half of what the others can, or takes nothing for too long.
void Transmitter::look_for_slow_members(const GroupWork& work, Instant now) {
  const auto has_room = [&](const hop::OutEdge& edge) {
    return next_send_to(state_.peers[edge.peer]) <= now;
  };
  std::uint64_t others = 0;  // the rate that each member with room can take at least; 0: not known
  bool any_waits = false;
  for (const hop::GroupMember& member : work.group->members()) {
    const hop::OutEdge& edge = *member.edge;
    if (!hop::lacks_group_block(edge, work.slot) || !has_room(edge)) continue;
    const std::uint64_t allowed = state_.peers[edge.peer].flow.allowed_bits_per_second();
    others = any_waits ? std::min(others, allowed) : allowed;
    any_waits = true;
  }
  const bool is_warm = work.group->sent(work.slot) >= hop::kGroupWarmUp;
  for (hop::GroupMember& member : work.group->members()) {
    const hop::OutEdge& edge = *member.edge;
    if (!any_waits || !hop::lacks_group_block(edge, work.slot) || has_room(edge)) {
      member.waited_for_since[work.slot] = Instant::never();
      continue;
    }
    const hop::Flow& flow = state_.peers[edge.peer].flow;
    const std::uint64_t allowed = flow.allowed_bits_per_second();
    const bool is_slow = is_warm && allowed > 0 && allowed * 2 < others;
    if (work.group->on_waited_for(member, work.slot, flow.min_rtt(), is_slow, now))
      ++state_.counters.group_members_left;
  }
}

/// A block's header is the same for all receivers of the group, so any of their edges can provide
/// it.
Outgoing Transmitter::write_to_group(const GroupWork& work, std::uint32_t block,
                                     std::span<std::byte> out, Instant now) {
  hop::Group& group = *work.group;
  const Round& round = state_.rounds[work.slot];
  hop::OutEdge& any = *group.members().front().edge;
  const aggregate::Tree& tree = work.plan->trees()[any.id.tree];
  wire::BlockHeader h = header_of({&any, work.slot}, block);
  h.tree = group.tree();
  const aggregate::Tree::Outbound sent =
      tree.bytes_to_send(work.plan->context(), round, any.is_push(), block);
  h.contributors = sent.contributors;
  h.wire_type = sent.wire;
  std::uint8_t flags = 0;
  if (any.senders[work.slot].is_critical(block)) flags |= wire::kFlagCritical;
  if (sent.partial) flags |= wire::kFlagPartial;
  if (any.is_push() && tree.is_bounded(round)) flags |= wire::kFlagBounded;
  if (group.sent(work.slot) + 1 >= group.range(work.slot).size()) flags |= wire::kFlagLast;
  wire::Envelope envelope = envelope_of(any.type, flags, now);
  for (const hop::GroupMember& member : group.members()) {
    envelope.parity_rows = add_to_parity(*member.edge, work.slot, block, sent);
  }
  const std::size_t payload_at =
      wire::write_block(out, envelope, h, nullptr, {.coverage = sent.hosts});
  sent.write(out.data() + payload_at);
  charge_members(group, work.slot, block, sent.size() + hop::kWireOverheadBytes, now);
  ++state_.counters.blocks_sent;
  count_payload(round, block, sent);
  const auto packet = out.first(payload_at + sent.size() + wire::kTagBytes);
  const std::uint64_t number = work.plan->next_group_number(group.tree());
  if (state_.config.authenticate) {
    wire::seal(packet, work.plan->key(),
               {.writer = state_.config.self,
                .receiver = wire::Receiver::group(group.tree()),
                .number = number});
  } else {
    wire::number_unsealed(packet, number);
  }
  return {.length_bytes = static_cast<std::uint32_t>(packet.size()),
          .group = GroupName{.job = state_.config.job,
                             .epoch = work.plan->epoch(),
                             .sender = state_.config.self,
                             .tree = group.tree(),
                             .selection = group.selection()}};
}

/// Charges a block that goes to the group now to the flows of its members.
void Transmitter::charge_members(hop::Group& group, std::size_t slot, std::uint32_t block,
                                 std::size_t wire_bytes, Instant now) {
  for (hop::GroupMember& member : group.members()) {
    if (!hop::Group::on_sent_to(member, slot, block, hop::clock_us(now))) continue;
    hop::OutEdge& edge = *member.edge;
    hop::Peer& peer = state_.peers[edge.peer];
    peer.flow.on_sent(now, wire_bytes, false);
    edge.active_us[slot] = hop::clock_us(now);
    guard_tail(edge, slot, now);
    edge.refresh(slot);
  }
  group.on_sent(slot, block);
}

/// When poll_groups() has a block to send or a decision to make.
Instant Transmitter::next_group() const {
  Instant at = Instant::never();
  for (const auto& plan : state_.plans.live()) {
    for (const hop::Group* group : plan->groups()) at = std::min(at, group->trial_time());
  }
  for_group_work([&](const GroupWork& work, bool has_members) {
    if (!has_members) return;
    at = std::min(at, group_opens(work));
    for (const hop::GroupMember& member : work.group->members()) {
      const Instant since = member.waited_for_since[work.slot];
      if (since == Instant::never()) continue;
      const Duration rtt = state_.peers[member.edge->peer].flow.min_rtt();
      at = std::min(at, since + hop::Group::patience_with(rtt));
    }
  });
  return at;
}

/// Finds blocks that were sent to the group and that the peer lacks although it has received a
/// later packet of the group.
bool Transmitter::find_lost_to_group(hop::OutEdge& edge, std::size_t slot, Duration window,
                                     Instant now) {
  const hop::GroupMember* member = edge.seats[slot].member;
  if (member == nullptr || now - member->heard_at > hop::kEchoLifetime) return false;
  return state_.find_lost(edge, slot, hop::kGroupPath, member->newest_echo_us, window, now);
}

}  // namespace gradplane::job
