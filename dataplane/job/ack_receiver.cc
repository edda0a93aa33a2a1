// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/job/ack_receiver.h"

#include "dataplane/hop/clock.h"

namespace gradplane::job {

using hop::Drop;

namespace {

/// Whether the ack says only that its sender has received a push and cannot take it yet.
bool is_refusal(const wire::AckPacket& packet) {
  constexpr unsigned kSays = wire::kFlagComplete | wire::kFlagClosed | wire::kFlagEnded;
  return packet.words.size() == 0 && packet.body.echo_us == 0 &&
         (packet.envelope->flags & kSays) == 0;
}

}  // namespace

/// Copies the ack's bitmap to where block senders can read it.
std::span<const std::uint64_t> AckReceiver::words_of(const wire::AckPacket& packet) {
  const std::size_t count = packet.words.size();
  for (std::size_t i = 0; i < count; ++i) (*words_)[i] = packet.words[i];
  return {words_->data(), count};
}

void AckReceiver::handle(const wire::AckPacket& packet, hop::PeerIndex peer_index, Instant now) {
  const wire::AckHeader& h = packet.header;
  const wire::AckBody& body = packet.body;
  if (!packet.extension.route.empty()) return state_.counters.drop(Drop::kBadRoute);
  Plan* plan = state_.plans.find(h.epoch);
  if (plan == nullptr && !state_.retired.is(h.epoch)) {
    return state_.counters.drop(Drop::kWrongEpoch);
  }
  hop::Peer& peer = state_.peers[peer_index];
  if (!peer.has_path(h.path)) return state_.counters.drop(Drop::kUnknownRoute);
  hop::OutEdge* edge = nullptr;
  if (plan != nullptr) {
    edge = edge_of(*plan, packet, peer_index);
    if (edge == nullptr) return state_.counters.drop(Drop::kNotPeer);
    const bool has_group = plan->has_group_over(*edge);
    if (h.path == hop::kGroupPath && !has_group) return state_.counters.drop(Drop::kUnknownRoute);
    edge->silent_looks = 0;
    if (!edge->is_push() && is_older(edge->ended_before, body.oldest_round)) {
      edge->ended_before = body.oldest_round;
      edge->ended_at = now;
    }
  }
  ++state_.counters.acks_received;
  peer.loss_there = packet.body.loss * wire::kLossUnit;
  peer.wants_sounding = (packet.envelope->flags & wire::kFlagSound) != 0;
  peer.flow.sounding().is_slow = (packet.envelope->flags & wire::kFlagSlow) != 0;
  if (!peer.wants_sounding) peer.flow.sounding().on_use();
  const std::uint32_t marked = peer.newly_marked(h.path, body.marked_packets);
  Round& round = state_.slot_of(h.round);
  const bool is_open = plan != nullptr && round.id == h.round && state_.has_open(*plan, round);
  if (is_open && !is_refusal(packet)) {
    return take_ack(*plan, *edge, round, packet, marked, now);
  }
  // The marks are all there is to learn: the round has ended here, or has not begun there.
  if (marked > 0) peer.on_acked(now, {}, h.path, marked);
}

/// The edge whose blocks an ack is about; nullptr if the plan has none.
hop::OutEdge* AckReceiver::edge_of(Plan& plan, const wire::AckPacket& packet, hop::PeerIndex peer) {
  if (packet.header.tree >= plan.trees().size()) return nullptr;
  aggregate::Tree& tree = plan.trees()[packet.header.tree];
  const bool of_push = packet.envelope->type == wire::PacketType::kPushAck;
  const auto type = of_push ? wire::PacketType::kPush : wire::PacketType::kResult;
  const hop::EdgeIndex index = tree.find_out(type, peer);
  return index == hop::kNoEdge ? nullptr : &tree.out(index);
}

/// Takes an ack of an open round. `marked`: blocks in marked packets that no earlier ack has
/// reported.
void AckReceiver::take_ack(Plan& plan, hop::OutEdge& edge, Round& round,
                           const wire::AckPacket& packet, std::uint32_t marked, Instant now) {
  const wire::AckBody& body = packet.body;
  const std::uint8_t flags = packet.envelope->flags;
  const std::size_t slot = round.slot();
  aggregate::Tree& tree = plan.trees()[edge.id.tree];
  hop::Peer& peer = state_.peers[edge.peer];
  hop::BlockSender& sender = edge.senders[slot];
  edge.heard = static_cast<std::uint16_t>(edge.heard | hop::OutEdge::bit(slot));
  const std::span<const std::uint64_t> words = words_of(packet);
  const bool was_settled = sender.settled();
  const std::uint32_t settled_before = sender.settled_count();
  if (edge.is_push() && (flags & wire::kFlagAllowed) != 0) tree.allow(round);
  hop::PathBlocks acked = sender.on_ack(packet.header.first_word, words);
  if ((flags & wire::kFlagComplete) != 0) acked += sender.on_complete();
  if (body.unscheduled_blocks != 0)
    state_.on_granted(body.total_blocks, body.unscheduled_blocks, peer);
  const std::size_t path = packet.header.path;
  const bool is_past = !hop::before_us(hop::clock_us(now), body.echo_us);
  const hop::Seat seat = edge.seats[slot];
  const bool is_of_group = path == hop::kGroupPath && seat.group != nullptr;
  if (is_of_group && is_past) seat.group->on_heard(*seat.member, body.echo_us, now);
  const auto ago = Duration::us(static_cast<std::int32_t>(hop::clock_us(now) - body.echo_us));
  if (peer.flow_of(path).is_of_sounding(now - ago)) marked = 0;
  // A listener gets packets at the pace of other receivers, and they fill its queue.
  const bool is_own_pace =
      path != hop::kGroupPath || sender.way() == hop::BlockSender::Way::kMember;
  if (is_own_pace) learn_path(peer.flow_of(path), packet, acked > 0, now);
  if (acked > 0) {
    state_.on_acked(edge, slot, acked, now, path, marked);
  } else if (marked > 0) {
    peer.on_acked(now, {}, path, marked);
  }
  if (is_past) {
    const Duration window = peer.flow_of(path).reorder_window();
    state_.find_lost(edge, slot, path, body.echo_us, window, now);
  }
  const bool may_close = edge.is_push() && round.geometry.bucket != 0;
  if (may_close && (flags & wire::kFlagClosed) != 0) {
    peer.on_forgotten(sender.on_closed());
  }
  state_.on_settled(edge, slot, settled_before);
  edge.refresh(slot);
  if (edge.is_push()) {
    watchdog_.check_answer(round, tree, packet, words, now);
  } else if (sender.complete() && !was_settled) {
    --round.results_unacked;
  }
  rounds_.finish_if_done(round);
}

/// Learns from an ack about the path: its round trip, and the one-way delay to the peer.
void AckReceiver::learn_path(hop::Flow& flow, const wire::AckPacket& packet, bool is_new,
                             Instant now) {
  const wire::AckBody& ack = packet.body;
  if (ack.echo_us == 0 || (!is_new && !flow.is_newer_echo(ack.echo_us))) return;
  if (hop::before_us(hop::clock_us(now), ack.echo_us)) return;
  const auto rtt_us =
      static_cast<std::int32_t>(hop::clock_us(now) - ack.echo_us - ack.ack_delay_us);
  if (rtt_us <= 0) return;
  flow.note_echo(now, ack.echo_us);
  const Instant sent = now - Duration::us(rtt_us + std::int64_t{ack.ack_delay_us});
  flow.note_answered(now, sent);
  if (flow.is_of_sounding(sent)) return;
  const std::uint32_t received_us = packet.envelope->timestamp_us - ack.ack_delay_us;
  flow.on_forward_delay(now, received_us - ack.echo_us);
  flow.on_rtt(now, Duration::us(rtt_us));
}

}  // namespace gradplane::job
