// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <bit>

#include "dataplane/base/assert.h"
#include "dataplane/job/job.h"

namespace gradplane::job {

void Job::handle(const wire::Packet& packet, std::span<const std::byte> datagram,
                 bool congestion_experienced, Instant now) {
  const wire::Header& h = packet.header;
  if (h.epoch != config_.epoch) return counters_.drop(Drop::kWrongEpoch);
  if (h.sender >= peer_of_node_.size() || peer_of_node_[h.sender] == kNoPeer ||
      h.tree >= config_.trees.size()) {
    return counters_.drop(Drop::kNotPeer);
  }
  const auto self = wire::Receiver::node(config_.self);
  if (config_.authenticate && !wire::is_authentic(datagram, config_.key, self)) {
    return counters_.drop(Drop::kBadTag);
  }
  const std::uint16_t peer = peer_of_node_[h.sender];
  if (h.type == wire::PacketType::kPush || h.type == wire::PacketType::kResult) {
    if (congestion_experienced) {
      ++marks_[peer].came;
      ++counters_.congestion_marks;
    }
    note_demand(packet, peer, congestion_experienced, now);
    handle_data(packet, peer, now);
  } else if (h.type == wire::PacketType::kGrant) {
    ++counters_.grants_received;
    take_grant(wire::read_grant(packet), peer);
  } else {
    handle_ack(packet, peer, now);
  }
}

/// Whatever becomes of the block itself: it has used the link, and some of its sender's credit.
void Job::note_demand(const wire::Packet& packet, std::uint16_t peer, bool ce, Instant now) {
  if (grants_ == nullptr) return;
  const wire::Header& h = packet.header;
  // It sees the same loop as we do, and sees it first: before results there is nothing of ours to
  // measure by.
  if (h.round_trip != 0) {
    grants_->on_rtt(sources_[peer], wire::kRoundTripUnit * std::int64_t{h.round_trip});
  }
  grants_->on_data(sources_[peer], h.sent_blocks, h.waiting_blocks,
                   packet.payload.size() + kWireOverheadBytes, ce, now);
}

void Job::take_grant(const wire::GrantBody& grant, std::uint16_t peer) {
  if (!config_.grants || !credits_[peer].on_total(grant.total_blocks)) {
    return counters_.drop(Drop::kBadGrant);
  }
  credits_[peer].on_unscheduled(grant.unscheduled_blocks);
}

Round* Job::round_for_data(const wire::Packet& packet, std::size_t edge, Instant now) {
  const wire::Header& h = packet.header;
  Round& round = slot_of(h.round);
  const auto ahead = static_cast<std::int32_t>(h.round - round.id);
  if (ahead < 0) {
    // The sender has not heard that we have everything: say it again.
    counters_.drop(Drop::kPastRound);
    request_ack(edge, h.round, true, now);
    return nullptr;
  }
  if (ahead > 0 && !may_be_passed_by(round)) {
    counters_.drop(Drop::kFutureRound);
    return nullptr;
  }
  const Geometry geometry =
      Geometry::of(h.element_type, h.round_elements, config_.block_bytes, h.bucket);
  if (!geometry_fits(geometry) || h.block >= geometry.blocks ||
      h.elements != geometry.elements_in(h.block) ||
      !range_of(h.tree, h.round, geometry).contains(h.block)) {
    counters_.drop(Drop::kBadGeometry);
    return nullptr;
  }
  if (round.open && round.geometry != geometry) {
    report_mismatch(h.sender, round, geometry);
    return nullptr;
  }
  if (h.type == wire::PacketType::kResult && !answers_a_push(round, packet)) {
    counters_.drop(Drop::kFutureRound);
    return nullptr;
  }
  if (!round.open) {
    round.id = h.round;
    open_round(round, geometry);
  }
  return &round;
}

/// A small bucket may have no block for some tree. A node without ranks then never hears of the
/// round, and its slot waits for it. A sender that has turned the slot over proves that the round
/// has ended everywhere: it has the results of all blocks, and none of them came through us.
bool Job::may_be_passed_by(const Round& round) const {
  return !round.open && config_.local_ranks.empty();
}

/// A result can exist only after our own contribution to its block has left, or after the root has
/// closed the round without it.
bool Job::answers_a_push(const Round& round, const wire::Packet& packet) const {
  const wire::Header& h = packet.header;
  if (!round.open) return false;
  const hop::BlockSender& push =
      edges_.out[edges_.push_out_of_tree[h.tree]].senders[h.round % kRoundSlots];
  if (push.was_sent(h.block)) return true;
  return push.settled() && all_submitted(round) && round.local_left[h.tree] == 0;
}

bool Job::all_submitted(const Round& round) const {
  return static_cast<std::size_t>(std::popcount(round.submitted)) == config_.local_ranks.size();
}

/// A push names every rank of its subtree. A result does, unless its root has closed the round
/// early, which only that of a flat tree may, and with floating gradients alone.
bool Job::names_its_ranks(const wire::Header& h, const InEdge& edge) const {
  const bool partial = (h.flags & wire::kFlagPartial) != 0;
  if (!partial) return h.contributors == edge.ranks;
  return h.type == wire::PacketType::kResult && config_.trees[h.tree].flat && h.bucket != 0 &&
         is_floating(h.element_type) && h.contributors < edge.ranks;
}

void Job::handle_data(const wire::Packet& packet, std::uint16_t peer, Instant now) {
  const wire::Header& h = packet.header;
  const std::size_t index = edges_.find_in(h.type, h.tree, peer);
  if (index == Edges::kNoEdge) return counters_.drop(Drop::kNotPeer);
  InEdge& edge = edges_.in[index];
  if (!names_its_ranks(h, edge)) return counters_.drop(Drop::kBadContributors);
  Round* round = round_for_data(packet, index, now);
  if (round == nullptr) return;
  hop::BlockReceiver& receiver = edge.receivers[h.round % kRoundSlots];
  const bool late = receiver.closed();
  const bool duplicate = late || !receiver.accept(h.block);
  const bool owed_before = receiver.owes_ack();
  const bool is_first = !receiver.has_heard();
  const bool at_once = receiver.note_packet({.timestamp_us = h.timestamp_us,
                                             .duplicate = duplicate,
                                             .last = (h.flags & wire::kFlagLast) != 0,
                                             .ack_every = ack_every_},
                                            now);
  if (late) {
    ++counters_.blocks_late;
  } else if (duplicate) {
    counters_.drop(Drop::kDuplicate);
  } else {
    ++counters_.blocks_received;
    counters_.payload_bytes_received += packet.payload.size();
  }
  if (at_once || !owed_before) request_ack(index, h.round, at_once, now);
  if (is_first && h.type == wire::PacketType::kPush) {
    release_results(edge, h.round % kRoundSlots);
  }
  if (duplicate) return;
  watch_.moved();
  note_come(h.round % kRoundSlots, 1);
  if (h.type == wire::PacketType::kPush) {
    handle_push(*round, edge, packet, now);
  } else {
    handle_result(*round, edge, packet, now);
  }
}

void Job::handle_push(Round& round, InEdge& edge, const wire::Packet& packet, Instant now) {
  const std::uint32_t block = packet.header.block;
  note_arrival(round, edge, packet.header, now);
  note_energy(round, block, packet.payload);
  if (round.accumulators[edge.tree].add(block, packet.payload, packet.header.contributors)) {
    block_gathered(round, edge.tree, block);
  }
  close_if_full(round, edge.tree);
}

void Job::handle_result(Round& round, const InEdge& edge, const wire::Packet& packet, Instant now) {
  const std::uint32_t block = packet.header.block;
  const std::size_t slot = round.id % kRoundSlots;
  OutEdge& push = edges_.out[edges_.push_out_of_tree[edge.tree]];
  hop::BlockSender& sender = push.senders[slot];
  const bool was_settled = sender.settled();
  const std::uint32_t settled_before = sender.settled_count();
  if (packet.header.contributors == config_.world_size) {
    // A full result of a block proves that our contribution to it has arrived. Who completes blocks
    // hears of it in no other way: the ack comes later.
    const std::uint32_t acked = sender.on_arrived(block);
    if (acked > 0) note_progress(push, slot, acked, 0, now);
    note_settled(push, slot, settled_before);
    refresh(push, slot);
  }
  // Where nobody is below us the sum stays: it may have to be pushed again, until we hear that it
  // has entered or never will.
  if (!edges_.results_out_of_tree[edge.tree].empty()) {
    round.accumulators[edge.tree].replace(block, packet.payload, packet.header.contributors);
  }
  result_known(round, edge.tree, block, packet.payload, packet.header.contributors);
  on_settled(round, push, was_settled, now);
}

void Job::handle_ack(const wire::Packet& packet, std::uint16_t peer, Instant now) {
  const wire::Header& h = packet.header;
  const bool of_push = h.type == wire::PacketType::kPushAck;
  const auto type = of_push ? wire::PacketType::kPush : wire::PacketType::kResult;
  const std::size_t index = edges_.find_out(type, h.tree, peer);
  if (index == Edges::kNoEdge) return counters_.drop(Drop::kNotPeer);
  ++counters_.acks_received;
  wire::AckBody body;
  std::array<std::uint64_t, wire::kMaxAckWords>& words = ack_->words;
  const std::size_t count = wire::read_ack(packet, body, words);
  const std::uint32_t marked = newly_marked(peer, body.marked_packets);
  Round& round = slot_of(h.round);
  if (!round.open || round.id != h.round) {  // it has ended here: nothing else to learn
    if (marked > 0) flows_[peer].on_acked(now, 0, marked);
    return;
  }
  OutEdge& edge = edges_.out[index];
  const std::size_t slot = h.round % kRoundSlots;
  hop::BlockSender& sender = edge.senders[slot];
  const bool was_settled = sender.settled();
  const std::uint32_t settled_before = sender.settled_count();

  std::uint32_t acked = sender.on_ack(h.block, {words.data(), count});
  if ((h.flags & wire::kFlagComplete) != 0) acked += sender.on_complete();
  if (body.unscheduled_blocks != 0) take_grant({body.total_blocks, body.unscheduled_blocks}, peer);
  hop::Flow& flow = flows_[peer];
  if (body.echo_us != 0 && (acked > 0 || flow.is_newer_echo(body.echo_us))) {
    const auto rtt_us =
        static_cast<std::int32_t>(hop::clock_us(now) - body.echo_us - body.ack_delay_us);
    if (rtt_us > 0) {
      flow.on_rtt(now, Duration::us(rtt_us));
      flow.note_echo(body.echo_us);
    }
  }
  if (acked > 0) {
    note_progress(edge, slot, acked, marked, now);
  } else if (marked > 0) {
    flow.on_acked(now, 0, marked);
  }
  if (!hop::before_us(hop::clock_us(now), body.echo_us)) {
    const hop::BlockSender::Lost lost = sender.find_lost(body.echo_us, flow.reorder_window());
    counters_.blocks_suspected_lost += lost.blocks;
    const auto ago = Duration::us(static_cast<std::int32_t>(hop::clock_us(now) - lost.newest_us));
    if (lost.blocks > 0) flow.on_lost(now, lost.blocks, now - ago);
  }
  const bool may_close = of_push && config_.trees[h.tree].flat && round.geometry.bucket != 0;
  if (may_close && (h.flags & wire::kFlagClosed) != 0) {
    flow.on_forgotten(sender.on_closed());
  }
  note_settled(edge, slot, settled_before);
  refresh(edge, slot);
  if (of_push) {
    on_settled(round, edge, was_settled, now);
    check_answer(round, edge, h, {words.data(), count}, body.echo_us, now);
  } else if (sender.complete() && !was_settled) {
    --round.results_unacked;
    finish_if_done(round);
  }
}

/// How many of our packets were marked that no ack has told of. An older ack than the last brings
/// none.
std::uint32_t Job::newly_marked(std::uint16_t peer, std::uint32_t total) {
  std::uint32_t& heard = marks_[peer].heard;
  const auto more = static_cast<std::int32_t>(total - heard);
  if (more <= 0) return 0;
  heard = total;
  return static_cast<std::uint32_t>(more);
}

/// Blocks of an edge that were in flight have arrived.
void Job::note_progress(OutEdge& edge, std::size_t slot, std::uint32_t acked, std::uint32_t marked,
                        Instant now) {
  edge.active_us[slot] = hop::clock_us(now);
  edge.backoff[slot] = 0;
  flows_[edge.peer].on_acked(now, acked, marked);
}

/// What the peer has, or will never need, of the iteration.
void Job::note_settled(const OutEdge& edge, std::size_t slot, std::uint32_t settled_before) {
  const std::uint32_t settled = edge.senders[slot].settled_count() - settled_before;
  if (settled > 0) watch_.moved();
  if (!iteration_ || settled == 0) return;
  iteration_->on_settled(slot, edge.peer, settled);
  flows_[edge.peer].on_phase(iteration_->ratio(edge.peer));
}

void Job::request_ack(std::size_t edge, std::uint32_t round, bool at_once, Instant now) {
  const AckRequest request{static_cast<std::uint16_t>(edge), round, now + hop::kMaxAckDelay};
  // Full queues lose only speed: the peer asks again by sending again.
  if (at_once) {
    (void)urgent_acks_.push(request);
  } else {
    (void)delayed_acks_.push(request);
  }
}

}  // namespace gradplane::job
