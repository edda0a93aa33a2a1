// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/job/receiver.h"

#include "dataplane/hop/clock.h"

namespace gradplane::job {

using hop::Drop;

Receiver::Receiver(State& state, Rounds& rounds, Watchdog& watchdog)
    : state_(state),
      rounds_(rounds),
      watchdog_(watchdog),
      words_(std::make_unique<std::array<std::uint64_t, wire::kMaxAckWords>>()) {}

void Receiver::handle(const wire::Packet& packet, std::span<const std::byte> datagram,
                      bool congestion_experienced, Instant now) {
  const wire::Header& h = packet.header;
  Plan* plan = state_.find_plan(h.epoch);
  if (plan == nullptr) return state_.counters.drop(Drop::kWrongEpoch);
  const std::uint16_t peer = state_.peers.find(h.sender);
  if (peer == hop::kNoPeer || h.tree >= plan->trees().size()) {
    return state_.counters.drop(Drop::kNotPeer);
  }
  const auto self = wire::Receiver::node(state_.config.self);
  if (state_.config.authenticate && !wire::is_authentic(datagram, state_.config.key, self)) {
    return state_.counters.drop(Drop::kBadTag);
  }
  if (h.type == wire::PacketType::kPush || h.type == wire::PacketType::kResult) {
    if (congestion_experienced) {
      ++state_.peers[peer].marks_received;
      ++state_.counters.congestion_marks;
    }
    state_.incoming.on_packet(packet, peer, congestion_experienced, now);
    handle_data(*plan, packet, peer, now);
  } else if (h.type == wire::PacketType::kGrant) {
    ++state_.counters.grants_received;
    take_grant(wire::read_grant(packet), state_.peers[peer]);
  } else {
    handle_ack(*plan, packet, peer, now);
  }
}

void Receiver::take_grant(const wire::GrantBody& grant, hop::Peer& peer) {
  if (!state_.config.grants || !peer.credit.on_total(grant.total_blocks)) {
    return state_.counters.drop(Drop::kBadGrant);
  }
  peer.credit.on_unscheduled(grant.unscheduled_blocks);
}

void Receiver::handle_data(Plan& plan, const wire::Packet& packet, std::uint16_t peer,
                           Instant now) {
  const wire::Header& h = packet.header;
  aggregate::Tree& tree = plan.trees()[h.tree];
  const std::size_t index = tree.find_in(h.type, peer);
  if (index == aggregate::Tree::kNoEdge) return state_.counters.drop(Drop::kNotPeer);
  hop::InEdge& edge = tree.in()[index];
  if (!names_its_ranks(tree, edge, h)) return state_.counters.drop(Drop::kBadContributors);
  Round* round = round_for(tree, packet, edge.id, now);
  if (round == nullptr) return;
  const bool is_first = !edge.receivers[round->slot()].has_heard();
  const bool is_new = accept(edge, packet, now);
  // A child takes no result of a round before it has contributed to it. Its first push shows that
  // it has. Until then results would fill its window, be dropped and be sent again and again, and
  // keep from it the results of the older rounds that it is at.
  if (is_first && edge.is_push()) tree.out()[index].release(round->slot());
  if (!is_new) return;
  state_.watch.moved();
  state_.incoming.on_blocks(round->slot(), 1);
  if (edge.is_push()) {
    const Duration rtt = state_.peers[peer].flow.min_rtt();
    tree.add_push(state_.context, *round, index, packet, rtt, now);
  } else {
    take_result(tree, *round, packet, now);
  }
  rounds_.settle(*round);
}

/// Notes a packet's arrival at its edge and asks for the ack that is due. True when its block is
/// new, and wanted.
bool Receiver::accept(hop::InEdge& edge, const wire::Packet& packet, Instant now) {
  const wire::Header& h = packet.header;
  hop::BlockReceiver& receiver = edge.receivers[h.round % kRoundSlots];
  const bool late = receiver.closed();
  const bool duplicate = late || !receiver.accept(h.block);
  const bool owed_before = receiver.owes_ack();
  const bool at_once = receiver.note_packet({.timestamp_us = h.timestamp_us,
                                             .duplicate = duplicate,
                                             .last = (h.flags & wire::kFlagLast) != 0,
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
  if (at_once || !owed_before) state_.acks.request(edge.id, h.round, at_once, now);
  return !duplicate;
}

/// The round that a block belongs to, opened by it if need be; nullptr when the block fits none.
Round* Receiver::round_for(const aggregate::Tree& tree, const wire::Packet& packet,
                           const hop::EdgeId& edge, Instant now) {
  const wire::Header& h = packet.header;
  Round& round = state_.slot_of(h.round);
  const auto drop = [this](Drop reason) {
    state_.counters.drop(reason);
    return nullptr;
  };
  if (is_older(h.round, round.id)) {
    // The sender has not heard that this node has everything: say it again.
    state_.acks.request(edge, h.round, true, now);
    return drop(Drop::kPastRound);
  }
  // A small bucket may have no block for some tree. A node without ranks then never hears of the
  // round, and its slot waits for it. A sender that has turned the slot over proves that the round
  // has ended everywhere: it has the results of all blocks, and none of them came through us.
  const bool may_be_passed_by = !round.open && state_.ranks.empty();
  if (h.round != round.id && !may_be_passed_by) return drop(Drop::kFutureRound);
  const Geometry geometry =
      Geometry::of(h.element_type, h.round_elements, state_.config.block_bytes, h.bucket);
  if (!rounds_.geometry_fits(geometry) || h.block >= geometry.blocks ||
      h.elements != geometry.elements_in(h.block) ||
      !state_.plan.range_of(h.tree, h.round, geometry).contains(h.block)) {
    return drop(Drop::kBadGeometry);
  }
  if (round.open && round.geometry != geometry) {
    rounds_.report_mismatch(h.sender, round, geometry);
    return nullptr;
  }
  if (h.type == wire::PacketType::kResult && !answers_a_push(tree, round, h)) {
    return drop(Drop::kFutureRound);
  }
  if (!round.open) {
    round.id = h.round;
    rounds_.open(round, geometry);
  }
  return &round;
}

/// A result can exist only after our own contribution to its block has left, or after the root has
/// closed the round without it.
bool Receiver::answers_a_push(const aggregate::Tree& tree, const Round& round,
                              const wire::Header& h) const {
  if (!round.open) return false;
  const hop::BlockSender& push = tree.push().senders[round.slot()];
  if (push.was_sent(h.block)) return true;
  return push.settled() && state_.all_submitted(round) && tree.local_left(round.slot()) == 0;
}

/// A push names every rank of its subtree. A result does, unless its root has closed the round
/// early, which only that of a flat tree may, and with floating gradients alone.
bool Receiver::names_its_ranks(const aggregate::Tree& tree, const hop::InEdge& edge,
                               const wire::Header& h) {
  const bool partial = (h.flags & wire::kFlagPartial) != 0;
  if (!partial) return h.contributors == edge.ranks;
  return h.type == wire::PacketType::kResult && tree.config().flat && h.bucket != 0 &&
         is_floating(h.element_type) && h.contributors < edge.ranks;
}

void Receiver::take_result(aggregate::Tree& tree, Round& round, const wire::Packet& packet,
                           Instant now) {
  const std::size_t slot = round.slot();
  hop::OutEdge& push = tree.push();
  hop::BlockSender& sender = push.senders[slot];
  const bool was_settled = sender.settled();
  const std::uint32_t settled_before = sender.settled_count();
  if (packet.header.contributors == state_.config.world_size) {
    // A full result of a block proves that our contribution to it has arrived. The node whose block
    // completes a sum hears of it in no other way: the ack comes later.
    const std::uint32_t acked = sender.on_arrived(packet.header.block);
    if (acked > 0) state_.on_acked(push, slot, acked, 0, now);
    state_.on_settled(push, slot, settled_before);
    push.refresh(slot);
  }
  tree.take_result(state_.context, round, packet);
  tree.on_settled(state_.context, round, was_settled, now);
}

void Receiver::handle_ack(Plan& plan, const wire::Packet& packet, std::uint16_t peer_index,
                          Instant now) {
  const wire::Header& h = packet.header;
  const bool of_push = h.type == wire::PacketType::kPushAck;
  const auto type = of_push ? wire::PacketType::kPush : wire::PacketType::kResult;
  aggregate::Tree& tree = plan.trees()[h.tree];
  const std::size_t index = tree.find_out(type, peer_index);
  if (index == aggregate::Tree::kNoEdge) return state_.counters.drop(Drop::kNotPeer);
  ++state_.counters.acks_received;
  wire::AckBody body;
  const std::size_t count = wire::read_ack(packet, body, *words_);
  const std::span<const std::uint64_t> words{words_->data(), count};
  hop::Peer& peer = state_.peers[peer_index];
  const std::uint32_t marked = peer.newly_marked(body.marked_packets);
  Round& round = state_.slot_of(h.round);
  if (!round.open || round.id != h.round) {  // it has ended here: nothing else to learn
    if (marked > 0) peer.flow.on_acked(now, 0, marked);
    return;
  }
  hop::OutEdge& edge = tree.out()[index];
  const std::size_t slot = round.slot();
  hop::BlockSender& sender = edge.senders[slot];
  const bool was_settled = sender.settled();
  const std::uint32_t settled_before = sender.settled_count();
  std::uint32_t acked = sender.on_ack(h.block, words);
  if ((h.flags & wire::kFlagComplete) != 0) acked += sender.on_complete();
  if (body.unscheduled_blocks != 0) take_grant({body.total_blocks, body.unscheduled_blocks}, peer);
  learn_path(peer, body, acked > 0, now);
  if (acked > 0) {
    state_.on_acked(edge, slot, acked, marked, now);
  } else if (marked > 0) {
    peer.flow.on_acked(now, 0, marked);
  }
  find_lost(edge, slot, body.echo_us, now);
  const bool may_close = of_push && tree.config().flat && round.geometry.bucket != 0;
  if (may_close && (h.flags & wire::kFlagClosed) != 0) {
    peer.flow.on_forgotten(sender.on_closed());
  }
  state_.on_settled(edge, slot, settled_before);
  edge.refresh(slot);
  if (of_push) {
    tree.on_settled(state_.context, round, was_settled, now);
    watchdog_.check_answer(round, tree, h, words, body.echo_us, now);
  } else if (sender.complete() && !was_settled) {
    --round.results_unacked;
  }
  rounds_.settle(round);
}

/// What an ack says about the path: its round trip.
void Receiver::learn_path(hop::Peer& peer, const wire::AckBody& ack, bool is_new, Instant now) {
  if (ack.echo_us == 0 || (!is_new && !peer.flow.is_newer_echo(ack.echo_us))) return;
  const auto rtt_us =
      static_cast<std::int32_t>(hop::clock_us(now) - ack.echo_us - ack.ack_delay_us);
  if (rtt_us <= 0) return;
  peer.flow.on_rtt(now, Duration::us(rtt_us));
  peer.flow.note_echo(ack.echo_us);
}

void Receiver::find_lost(hop::OutEdge& edge, std::size_t slot, std::uint32_t echo_us, Instant now) {
  if (hop::before_us(hop::clock_us(now), echo_us)) return;
  hop::Flow& flow = state_.peers[edge.peer].flow;
  const hop::BlockSender::Lost lost = edge.senders[slot].find_lost(echo_us, flow.reorder_window());
  state_.counters.blocks_suspected_lost += lost.blocks;
  const auto ago = Duration::us(static_cast<std::int32_t>(hop::clock_us(now) - lost.newest_us));
  if (lost.blocks > 0) flow.on_lost(now, lost.blocks, now - ago);
}

}  // namespace gradplane::job
