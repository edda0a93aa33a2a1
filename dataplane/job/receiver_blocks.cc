// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Handles the blocks of an authentic packet that comes for the first time.
#include <algorithm>

#include "dataplane/job/receiver.h"
#include "dataplane/job/statement.h"

namespace gradplane::job {

using hop::Drop;

/// The number of blocks in a packet. Only a packet of a narrow wire type may have several. A
/// payload that is not whole blocks counts as one block, and is judged as one.
std::size_t Receiver::count_blocks(const wire::BlockPacket& packet) const {
  const wire::BlockHeader& h = packet.header;
  if (h.wire_type == WireType::kElements || packet.payload.size() > state_.config.block_bytes)
    return 1;
  const auto geometry = geometry_of(h);
  return geometry ? std::max<std::size_t>(blocks_in(packet, *geometry), 1) : 1;
}

std::optional<Geometry> Receiver::geometry_of(const wire::BlockHeader& h) const {
  const Round& round = state_.slot_of(h.round);
  const bool is_known = round.open && round.id == h.round && says_the_same(h, round.geometry);
  return is_known ? std::optional(round.geometry) : rounds_.geometry_of(statement_of(h));
}

void Receiver::take_blocks(Plan& plan, const wire::BlockPacket& packet, std::size_t count,
                           hop::PeerIndex peer, Instant now) {
  const auto geometry = geometry_of(packet.header);
  wire::BlockPacket block = packet;
  for (std::size_t n = 0, at = 0; geometry && n < count; ++n, ++block.header.block) {
    const std::size_t bytes = payload_bytes(block.header, *geometry);
    block.payload = packet.payload.subspan(at, bytes);
    at += bytes;
    take_block(plan, block, peer, now);
  }
}

void Receiver::take_block(Plan& plan, const wire::BlockPacket& packet, hop::PeerIndex peer,
                          Instant now) {
  const wire::BlockHeader& h = packet.header;
  // Packets of two plans never meet in one sum (I7 in docs/protocol.md).
  if (state_.plans.is_prepared(plan)) return state_.refuse_for_now(plan, peer, packet);
  if (!state_.plans.carries(plan, h.round)) return state_.counters.drop(Drop::kWrongEpoch);
  aggregate::Tree& tree = plan.trees()[h.tree];
  const hop::EdgeIndex index = tree.find_in(packet.envelope->type, peer);
  if (index == hop::kNoEdge) return state_.counters.drop(Drop::kNotPeer);
  hop::InEdge& edge = tree.in(index);
  const auto covered = hosts_of(tree, edge, packet);
  if (!covered) return state_.counters.drop(Drop::kBadContributors);
  if (Streams::takes(edge, h)) return take_update(plan, edge, packet, now);
  Round* round = round_for(plan, packet, *covered, edge.id, now);
  if (round == nullptr) return;
  hop::BlockReceiver& receiver = edge.receivers[round->slot()];
  const bool is_first = !receiver.has_heard();
  const bool is_over = edge.is_push() && tree.is_over(round->slot(), h.block);
  const bool is_new = accept(plan, edge.id, receiver, is_over, packet, now);
  // A child takes no result of a round before it has contributed to it, and its first push shows
  // that it has. If results were sent earlier, they would fill its window, be dropped and sent
  // again and again, and delay the results of older rounds that the child still needs.
  if (is_first && edge.is_push()) tree.out(index).release(round->slot());
  if (!is_new) return;
  state_.watch.moved();
  state_.incoming.on_blocks(round->slot(), 1);
  if (edge.is_push()) {
    const Duration rtt = state_.peers[peer].flow.min_rtt();
    tree.add_push(plan.context(), *round, index, packet, *covered, rtt, now);
  } else {
    take_result(plan, *round, packet, *covered, now);
  }
  follow_parity(plan, edge, packet, peer, now);
  rounds_.finish_if_done(*round);
}

/// Takes a block of a rank that is not in step with this node.
void Receiver::take_update(Plan& plan, hop::InEdge& edge, const wire::BlockPacket& packet,
                           Instant now) {
  hop::StreamSlot* slot = streams_.slot_of(plan, edge, packet, now);
  if (slot == nullptr) return;
  if (streams_.must_wait(*slot, packet.header.block)) {
    // The ack shows that this node is alive. It need not go at once, because another packet will
    // follow it.
    slot->receiver.note_packet({.timestamp_us = packet.envelope->timestamp_us, .path = path_}, now);
    plan.acks().request(edge.id, packet.header.round, slot->receiver, false, now);
    return state_.counters.drop(Drop::kFutureRound);
  }
  if (!accept(plan, edge.id, slot->receiver, false, packet, now)) return;
  state_.watch.moved();
  streams_.add(plan, edge, *slot, packet, now);
}

/// Notes a packet's arrival at its edge and requests the ack that is due. True if its block is new
/// and wanted. `is_over`: nothing enters the block any more.
bool Receiver::accept(Plan& plan, const hop::EdgeId& edge, hop::BlockReceiver& receiver,
                      bool is_over, const wire::BlockPacket& packet, Instant now) {
  const wire::BlockHeader& h = packet.header;
  const bool is_closed = receiver.closed();
  const bool duplicate = is_closed || !receiver.accept(h.block);
  const bool late = is_closed || (!duplicate && is_over);
  const bool at_once =
      receiver.note_packet({.timestamp_us = packet.envelope->timestamp_us,
                            .duplicate = duplicate,
                            .last = (packet.envelope->flags & wire::kFlagLast) != 0,
                            .path = path_,
                            .ack_every = ack_every_},
                           now);
  if (late) {
    ++state_.counters.blocks_late;
  } else if (duplicate) {
    state_.counters.drop(Drop::kDuplicate);
  } else {
    ++state_.counters.blocks_received;
    state_.counters.payload_bytes_received += packet.payload.size();
  }
  plan.acks().request(edge, h.round, receiver, at_once, now);
  return !duplicate && !late;
}

/// The round to which a block belongs; the block may open it. nullptr if the block fits no round.
Round* Receiver::round_for(Plan& plan, const wire::BlockPacket& packet, aggregate::HostSet covered,
                           const hop::EdgeId& edge, Instant now) {
  const wire::BlockHeader& h = packet.header;
  Round& round = state_.slot_of(h.round);
  const auto drop = [this](Drop reason) {
    state_.counters.drop(reason);
    return nullptr;
  };
  if (is_older(h.round, round.id)) {
    // The sender has not heard that this node has everything, so the ack is sent again.
    plan.acks().request(edge, h.round, now);
    return drop(Drop::kPastRound);
  }
  // A small bucket may have no block for some tree. A node without ranks then never hears of the
  // round, and its slot keeps waiting for it. If a sender uses the slot for a later round, the
  // earlier round has ended everywhere: the sender has all its results, and none of them came
  // through this node.
  const bool may_be_passed_by =
      !round.open && state_.ranks.empty() && knows_rounds_before(plan, h, edge);
  aggregate::Tree& tree = plan.trees()[h.tree];
  const bool is_too_early = (h.round != round.id && !may_be_passed_by) ||
                            (!round.open && !state_.plans.may_open(h.round));
  if (is_too_early) {
    state_.refuse_for_now(plan, tree.in(edge.index).peer, packet);
    return nullptr;
  }
  // For a packet that agrees with an open round, the geometry need not be computed.
  const bool is_known = round.open && says_the_same(h, round.geometry);
  const auto stated = is_known ? round.geometry : rounds_.geometry_of(statement_of(h));
  if (!stated) return drop(Drop::kBadGeometry);
  const Geometry& geometry = *stated;
  const BlockRange range =
      is_known ? tree.range(round.slot()) : plan.range_of(h.tree, h.round, geometry);
  if (!range.contains(h.block) || packet.payload.size() != payload_bytes(h, geometry) ||
      !may_go_as(h, is_known ? round.bucket : rounds_.bucket_of(geometry))) {
    return drop(Drop::kBadGeometry);
  }
  if (round.open && !is_known) {
    rounds_.report_mismatch(packet.envelope->sender, round, geometry);
    return nullptr;
  }
  const bool is_result = packet.envelope->type == wire::PacketType::kResult;
  const bool names_its_ranks =
      is_result ||
      tree.names_its_ranks(edge.index, geometry, plan.partition(), h.block, h.contributors);
  if (!names_its_ranks) return drop(Drop::kBadContributors);
  if (is_result && !may_have_result(tree, round, h.block, covered)) {
    return drop(Drop::kFutureRound);
  }
  if (!round.open) {
    round.id = h.round;
    rounds_.open(round, geometry);
  }
  return &round;
}

/// Whether a packet on this edge proves that earlier rounds of its slot have ended. A rank that
/// joined the job with this plan took part in none of the older rounds, so it proves nothing about
/// those that the older plan still carries.
bool Receiver::knows_rounds_before(const Plan& plan, const wire::BlockHeader& h,
                                   const hop::EdgeId& edge) const {
  if (!state_.plans.is_switching() || &plan == state_.plans.live()[0].get()) return true;
  if (!plan.follows_other_plan(h.round)) return true;
  return aggregate::meets(plan.trees()[h.tree].hosts_of(edge.index), plan.hosts_of_plan_before());
}

/// Whether a result of the block can exist. It can only after this node has sent its own
/// contribution, or after a node above has gone on without it.
bool Receiver::may_have_result(const aggregate::Tree& tree, const Round& round, std::uint32_t block,
                               aggregate::HostSet covered) const {
  if (!round.open || !state_.all_submitted(round)) return false;
  if (path_ == hop::kGroupPath && !is_heard_by_parent(tree, round, covered)) return false;
  return tree.may_have_result(round, block, covered);
}

/// The hosts whose ranks are in a block; nothing if the packet contradicts itself. A block that
/// lacks nobody has only a number of contributions: all ranks, or the one whose block it is. A
/// partial block must have a floating-point type and belong to a bucket, because only such blocks
/// are gathered under bounds; or it is an empty push.
std::optional<aggregate::HostSet> Receiver::hosts_of(const aggregate::Tree& tree,
                                                     const hop::InEdge& edge,
                                                     const wire::BlockPacket& packet) {
  const wire::BlockHeader& h = packet.header;
  const aggregate::HostSet all = tree.hosts_of(edge.id.index);
  const auto& named = packet.extension.coverage;
  if ((packet.envelope->flags & wire::kFlagPartial) == 0) {
    const std::uint16_t whole = all_contribute(h.operation) ? edge.ranks : std::uint16_t{1};
    if (h.contributors != whole || !named.empty()) return std::nullopt;
    return all;
  }
  if (h.is_empty() && edge.is_push() && named.empty()) {
    std::fill_n(covered_->begin(), all.size(), 0);
    return aggregate::HostSet(covered_->data(), all.size());
  }
  if (h.bucket == 0 || !is_floating(h.element_type) || h.contributors >= edge.ranks ||
      named.size() != all.size()) {
    return std::nullopt;
  }
  for (std::size_t w = 0; w < all.size(); ++w) (*covered_)[w] = named[w];
  const aggregate::HostSet covered{covered_->data(), all.size()};
  if (!aggregate::is_subset(covered, all)) return std::nullopt;
  if (tree.hosts().ranks_in(covered) != h.contributors) return std::nullopt;
  return covered;
}

void Receiver::take_result(Plan& plan, Round& round, const wire::BlockPacket& packet,
                           aggregate::HostSet covered, Instant now) {
  aggregate::Tree& tree = plan.trees()[packet.header.tree];
  const std::size_t slot = round.slot();
  const std::uint32_t block = packet.header.block;
  hop::OutEdge& push = tree.push();
  hop::BlockSender& sender = push.senders[slot];
  const std::uint32_t settled_before = sender.settled_count();
  if (tree.covers_own_push(covered)) {
    // The result proves that this node's contribution has arrived. The node whose block completes a
    // sum learns it earlier this way than from the ack.
    const hop::PathBlocks acked = sender.on_arrived(block);
    if (acked > 0) state_.on_acked(push, slot, acked, now);
  } else {
    state_.peers[push.peer].on_forgotten(sender.settle(block));
  }
  state_.on_settled(push, slot, settled_before);
  push.refresh(slot);
  const std::uint32_t missing = tree.take_result(plan.context(), round, packet, covered, now);
  if (missing > 0) state_.incoming.on_blocks(slot, missing);
}

}  // namespace gradplane::job
