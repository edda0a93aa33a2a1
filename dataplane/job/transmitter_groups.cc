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
namespace {

/// Whether the edge's peer is to get blocks of the round by the group.
bool is_member(const hop::OutEdge& edge, std::size_t slot) {
  const hop::BlockSender& sender = edge.senders[slot];
  return sender.is_in_group() && !sender.settled() && (edge.held & hop::OutEdge::bit(slot)) == 0;
}

}  // namespace

/// The oldest round with results for a group some of whose members may take results.
Transmitter::GroupWork Transmitter::next_group_work() const {
  GroupWork best;
  for (const auto& plan : state_.plans.live()) {
    for (aggregate::Tree* tree : plan->multicasting()) {
      for (unsigned bits = tree->group()->queued(); bits != 0; bits &= bits - 1) {
        const auto slot = static_cast<std::size_t>(std::countr_zero(bits));
        const auto children = std::as_const(*tree).child_results();
        const bool any = std::any_of(children.begin(), children.end(), [slot](const auto& edge) {
          return is_member(edge, slot);
        });
        const bool is_first = best.tree == nullptr || is_older(state_.rounds[slot].id,
                                                               state_.rounds[best.slot].id);
        if (any && is_first) best = {.plan = plan.get(), .tree = tree, .slot = slot};
      }
    }
  }
  return best;
}

/// When every member has room for the next block.
Instant Transmitter::group_opens(const GroupWork& work) const {
  Instant at;
  for (const hop::OutEdge& edge : work.tree->child_results()) {
    if (is_member(edge, work.slot)) at = std::max(at, next_send_to(state_.peers[edge.peer]));
  }
  return at;
}

bool Transmitter::waits_for_group(const hop::Peer& peer) const {
  return std::any_of(peer.edges.begin(), peer.edges.end(), [this](const hop::OutEdge* edge) {
    if (edge->is_push()) return false;
    hop::Group* group = state_.plans.find(edge->id.epoch)->trees()[edge->id.tree].group();
    if (group == nullptr) return false;
    for (unsigned bits = group->queued(); bits != 0; bits &= bits - 1) {
      if (is_member(*edge, static_cast<std::size_t>(std::countr_zero(bits)))) return true;
    }
    return false;
  });
}

std::optional<Outgoing> Transmitter::poll_groups(std::span<std::byte> out, Instant now) {
  if (const auto trial = try_groups(out, now)) return trial;
  const GroupWork work = next_group_work();
  if (work.tree == nullptr) return std::nullopt;
  if (group_opens(work) > now) {
    look_for_slow_members(work, now);
    return std::nullopt;
  }
  const auto block = work.tree->group()->next(work.slot, work.tree->child_results());
  if (!block) return std::nullopt;
  group_had_turn_ = true;
  return write_to_group(work, *block, out, now);
}

/// Whether the network copies shows only when it is tried.
std::optional<Outgoing> Transmitter::try_groups(std::span<std::byte> out, Instant now) {
  for (const auto& plan : state_.plans.live()) {
    for (aggregate::Tree* tree : plan->multicasting()) {
      if (tree->group()->next_trial(tree->child_results()) > now) continue;
      const hop::Group::Trial trial = tree->group()->trial(now);
      return write_to_group({.plan = plan.get(), .tree = tree, .slot = trial.slot}, trial.block,
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
    if (!is_member(edge, work.slot) || !has_room(edge)) continue;
    const std::uint64_t allowed = state_.peers[edge.peer].flow.allowed_bits_per_second();
    others = any_waits ? std::min(others, allowed) : allowed;
    any_waits = true;
  }
  if (!any_waits) return;
  const bool is_warm = work.tree->group()->sent(work.slot) >= hop::kGroupWarmUp;
  for (hop::OutEdge& edge : work.tree->child_results()) {
    if (!is_member(edge, work.slot) || has_room(edge)) continue;
    const hop::Flow& flow = state_.peers[edge.peer].flow;
    const bool is_slow = is_warm && flow.allowed_bits_per_second() * 2 < others;
    if (hop::Group::on_waited_for(edge, flow.smoothed_rtt(), is_slow, now))
      ++state_.counters.group_members_left;
  }
}

Outgoing Transmitter::write_to_group(const GroupWork& work, std::uint32_t block,
                                     std::span<std::byte> out, Instant now) {
  hop::Group& group = *work.tree->group();
  const Round& round = state_.rounds[work.slot];
  const std::span<hop::OutEdge> children = work.tree->child_results();
  group.on_sent(work.slot, block);
  wire::BlockHeader h = header_of({&children.front(), work.slot}, block);
  const aggregate::Tree::Outbound sent =
      work.tree->bytes_to_send(work.plan->context(), round, false, block);
  h.contributors = sent.contributors;
  std::uint8_t flags = wire::kFlagCritical;
  if (sent.partial) flags |= wire::kFlagPartial;
  if (group.all_sent(work.slot)) flags |= wire::kFlagLast;
  const std::size_t payload_at =
      wire::write_block(out, envelope_of(wire::PacketType::kResult, flags, now), h, nullptr,
                        {.coverage = sent.hosts});
  if (!sent.bytes.empty()) {
    std::memcpy(out.data() + payload_at, sent.bytes.data(), sent.bytes.size());
  }
  const std::size_t wire_bytes = sent.bytes.size() + hop::kWireOverheadBytes;
  for (hop::OutEdge& edge : children) {
    edge.member.waited_for_since = Instant::never();
    if (edge.senders[work.slot].on_group_sent(block, hop::clock_us(now))) {
      state_.peers[edge.peer].flow.on_sent(now, wire_bytes, false);
      edge.active_us[work.slot] = hop::clock_us(now);
    }
    edge.refresh(work.slot);
  }
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
    for (aggregate::Tree* tree : plan->multicasting())
      at = std::min(at, tree->group()->next_trial(tree->child_results()));
  }
  const GroupWork work = next_group_work();
  if (work.tree == nullptr) return at;
  for (const hop::OutEdge& edge : work.tree->child_results()) {
    if (edge.member.waited_for_since == Instant::never()) continue;
    const Duration rtt = state_.peers[edge.peer].flow.smoothed_rtt();
    at = std::min(at, edge.member.waited_for_since + hop::Group::patience_with(rtt));
  }
  return std::min(at, group_opens(work));
}

}  // namespace gradplane::job
