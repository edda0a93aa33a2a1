// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How results go to groups: which go next, when all members have room, and who is too slow.
#include <algorithm>
#include <bit>
#include <cstring>

#include "dataplane/hop/clock.h"
#include "dataplane/job/transmitter.h"
#include "dataplane/wire/seal.h"

namespace gradplane::job {
template <typename Visit>
void Transmitter::for_group_work(Visit visit) const {
  for (const auto& plan : state_.plans.live()) {
    for (aggregate::Tree* tree : plan->multicasting()) {
      for (unsigned bits = tree->group()->queued(); bits != 0; bits &= bits - 1) {
        const auto slot = static_cast<std::size_t>(std::countr_zero(bits));
        const auto children = std::as_const(*tree).child_results();
        const bool any = std::any_of(children.begin(), children.end(), [slot](const auto& edge) {
          return hop::is_group_member(edge, slot);
        });
        visit(GroupWork{.plan = plan.get(), .tree = tree, .slot = slot}, any);
      }
    }
  }
}

/// Trees of a round advance together.
bool Transmitter::goes_before(const GroupWork& work, const GroupWork& other) const {
  if (work.slot != other.slot) return round_goes_before(work.slot, other.slot);
  const auto left = [](const GroupWork& of, std::size_t slot) {
    return std::uint64_t{of.tree->group()->sent(slot)} * of.tree->range(slot).size();
  };
  return left(work, work.slot) < left(other, other.slot);
}

/// When every member has room for the next block. A sounding of one of them goes first, back to
/// back.
Instant Transmitter::group_opens(const GroupWork& work) const {
  Instant at;
  Duration longest;
  for (const hop::OutEdge& edge : work.tree->child_results()) {
    longest = std::max(longest, state_.peers[edge.peer].flow.smoothed_rtt());
    if (!hop::is_group_member(edge, work.slot)) continue;
    const hop::Peer& peer = state_.peers[edge.peer];
    if (peer.flow.sounding().is_on()) return Instant::never();
    at = std::max(at, next_send_to(peer));
  }
  const hop::Group& group = *work.tree->group();
  return std::max(at, group.waits_until(work.slot, work.tree->child_results(), longest));
}

bool Transmitter::waits_for_group(const hop::Peer& peer) const {
  return std::any_of(peer.edges.begin(), peer.edges.end(), [this](const hop::OutEdge* edge) {
    if (edge->is_push()) return false;
    const hop::Group* group = state_.plans.find(edge->id.epoch)->trees()[edge->id.tree].group();
    if (group == nullptr) return false;
    for (unsigned bits = group->queued(); bits != 0; bits &= bits - 1) {
      const auto slot = static_cast<std::size_t>(std::countr_zero(bits));
      if (hop::is_group_member(*edge, slot)) return true;
    }
    return false;
  });
}

std::optional<Outgoing> Transmitter::poll_groups(std::span<std::byte> out, Instant now) {
  if (const auto trial = try_groups(out, now)) return trial;
  GroupWork best;
  for_group_work([&](const GroupWork& work, bool has_members) {
    if (!has_members) return hop::Group::on_all_held(work.slot, work.tree->child_results());
    work.tree->group()->on_may_begin(work.slot, now);
    if (group_opens(work) > now) return look_for_slow_members(work, now);
    if (best.tree == nullptr || goes_before(work, best)) best = work;
  });
  if (best.tree == nullptr) return std::nullopt;
  const auto block = best.tree->group()->next(best.slot, best.tree->child_results());
  if (!block) return std::nullopt;
  group_had_turn_ = true;
  return write_to_group(best, *block, out, now);
}

/// Whether the network copies shows only when it is tried.
std::optional<Outgoing> Transmitter::try_groups(std::span<std::byte> out, Instant now) {
  for (const auto& plan : state_.plans.live()) {
    for (aggregate::Tree* tree : plan->multicasting()) {
      hop::Group& group = *tree->group();
      group.begin_trials(now);
      if (group.trial_time(tree->child_results()) > now) continue;
      const auto trial = group.trial(tree->child_results());
      group.on_trial(now);
      return write_to_group({.plan = plan.get(), .tree = tree, .slot = trial->slot}, trial->block,
                            out, now);
    }
  }
  return std::nullopt;
}

/// Members with room wait for those without. Who can take less than half of what the others can,
/// or takes nothing for too long, gets its results alone.
void Transmitter::look_for_slow_members(const GroupWork& work, Instant now) {
  const auto has_room = [&](const hop::OutEdge& edge) {
    return next_send_to(state_.peers[edge.peer]) <= now;
  };
  std::uint64_t others = 0;  // what each of those with room can take at least; 0: not known
  bool any_waits = false;
  for (const hop::OutEdge& edge : work.tree->child_results()) {
    if (!hop::is_group_member(edge, work.slot) || !has_room(edge)) continue;
    const std::uint64_t allowed = state_.peers[edge.peer].flow.allowed_bits_per_second();
    others = any_waits ? std::min(others, allowed) : allowed;
    any_waits = true;
  }
  const bool is_warm = work.tree->group()->sent(work.slot) >= hop::kGroupWarmUp;
  for (hop::OutEdge& edge : work.tree->child_results()) {
    if (!any_waits || !hop::is_group_member(edge, work.slot) || has_room(edge)) {
      edge.member.waited_for_since = Instant::never();
      continue;
    }
    const hop::Flow& flow = state_.peers[edge.peer].flow;
    const std::uint64_t allowed = flow.allowed_bits_per_second();
    const bool is_slow = is_warm && allowed > 0 && allowed * 2 < others;
    if (hop::Group::on_waited_for(edge, flow.smoothed_rtt(), is_slow, now))
      ++state_.counters.group_members_left;
  }
}

Outgoing Transmitter::write_to_group(const GroupWork& work, std::uint32_t block,
                                     std::span<std::byte> out, Instant now) {
  hop::Group& group = *work.tree->group();
  const Round& round = state_.rounds[work.slot];
  const std::span<hop::OutEdge> children = work.tree->child_results();
  wire::BlockHeader h = header_of({&children.front(), work.slot}, block);
  const aggregate::Tree::Outbound sent =
      work.tree->bytes_to_send(work.plan->context(), round, false, block);
  h.contributors = sent.contributors;
  std::uint8_t flags = wire::kFlagCritical;
  if (sent.partial) flags |= wire::kFlagPartial;
  if (group.sent(work.slot) + 1 >= work.tree->range(work.slot).size()) flags |= wire::kFlagLast;
  const std::size_t payload_at =
      wire::write_block(out, envelope_of(wire::PacketType::kResult, flags, now), h, nullptr,
                        {.coverage = sent.hosts});
  if (!sent.bytes.empty()) {
    std::memcpy(out.data() + payload_at, sent.bytes.data(), sent.bytes.size());
  }
  const std::size_t wire_bytes = sent.bytes.size() + hop::kWireOverheadBytes;
  for (hop::OutEdge& edge : children) {
    edge.member.waited_for_since = Instant::never();
    if (!group.on_sent_to(edge, work.slot, block, hop::clock_us(now))) continue;
    hop::Peer& peer = state_.peers[edge.peer];
    peer.flow.on_sent(now, wire_bytes, false);
    edge.active_us[work.slot] = hop::clock_us(now);
    copy_tail(peer, edge.senders[work.slot], now);
    edge.refresh(work.slot);
  }
  group.on_sent(work.slot, block, children);
  ++state_.counters.blocks_sent;
  ++state_.counters.blocks_to_groups;
  state_.counters.payload_bytes_sent += sent.bytes.size();
  const auto packet = out.first(payload_at + sent.bytes.size() + wire::kTagBytes);
  const std::uint8_t tree = children.front().id.tree;
  if (state_.config.authenticate) {
    wire::seal(packet, work.plan->key(), wire::Receiver::group(tree), group.next_number());
  } else {
    wire::number_unsealed(packet, group.next_number());
  }
  return {.length_bytes = static_cast<std::uint32_t>(packet.size()),
          .group = GroupName{.job = state_.config.job,
                             .epoch = work.plan->epoch(),
                             .sender = state_.config.self,
                             .tree = tree}};
}

/// When poll_groups() has something to send or to decide.
Instant Transmitter::next_group() const {
  Instant at = Instant::never();
  for (const auto& plan : state_.plans.live()) {
    for (aggregate::Tree* tree : plan->multicasting()) {
      at = std::min(at, tree->group()->trial_time(tree->child_results()));
    }
  }
  for_group_work([&](const GroupWork& work, bool has_members) {
    if (!has_members) return;
    at = std::min(at, group_opens(work));
    for (const hop::OutEdge& edge : work.tree->child_results()) {
      if (edge.member.waited_for_since == Instant::never()) continue;
      const Duration rtt = state_.peers[edge.peer].flow.smoothed_rtt();
      at = std::min(at, edge.member.waited_for_since + hop::Group::patience_with(rtt));
    }
  });
  return at;
}

/// A later packet to the group has come to the peer.
bool Transmitter::find_lost_to_group(hop::OutEdge& edge, std::size_t slot, Duration window,
                                     Instant now) {
  if (edge.is_push() || now - edge.member.heard_at > hop::kEchoLifetime) return false;
  return state_.find_lost(edge, slot, hop::kGroupPath, edge.member.newest_echo_us, window, now);
}

}  // namespace gradplane::job
