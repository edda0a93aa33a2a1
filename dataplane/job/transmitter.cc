// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/job/transmitter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "dataplane/hop/clock.h"
#include "dataplane/wire/seal.h"

namespace gradplane::job {
namespace {

/// The probe timeout doubles with each unanswered probe, this many times at most, and up to the
/// longest pause. A peer on a path with heavy loss, or whose address is being resolved, is probed
/// again soon: one block per pause is no load, and a job that stands still costs more. This also
/// holds for a peer that has fallen silent and has a long measured round trip. That round trip may
/// be wrong: on a path that loses almost everything, it may come from a single packet that was
/// late.
constexpr std::uint8_t kMaxBackoff = 5;
constexpr Duration kMaxProbePause = Duration::ms(40);

/// If the peer may refuse the round for as long as its rank computes, probes need not hurry.
Duration probe_pause(Duration timeout, std::uint8_t backoff, bool may_be_refused) {
  const Duration pause = std::min(timeout * (std::int64_t{1} << backoff), kMaxProbePause);
  return backoff > kSilentAfterProbes && !may_be_refused ? pause : std::max(timeout, pause);
}

}  // namespace

Transmitter::Transmitter(State& state)
    : state_(state),
      ack_(std::make_unique<hop::BlockReceiver::Ack>()),
      narrowed_(state.config.block_bytes) {}

wire::Envelope Transmitter::envelope_of(wire::PacketType type, std::uint8_t flags,
                                        Instant now) const {
  return {.type = type,
          .flags = flags,
          .job = state_.config.job,
          .sender = state_.config.self,
          .timestamp_us = hop::clock_us(now)};
}

Outgoing Transmitter::finish(hop::Peer& peer, std::span<std::byte> packet,
                             std::span<const std::byte> lent) const {
  const std::uint64_t number = ++peer.packets_sent;
  if (state_.config.authenticate) {
    const wire::PacketName name{.writer = state_.config.self,
                                .receiver = wire::Receiver::node(peer.node),
                                .number = number};
    wire::seal(packet, *peer.key, name, lent);
  } else {
    wire::number_unsealed(packet, number);
  }
  return {
      .node = peer.node, .length_bytes = static_cast<std::uint32_t>(packet.size()), .lent = lent};
}

std::optional<Outgoing> Transmitter::poll_ack(std::span<std::byte> out, Instant now) {
  for (const auto& plan : state_.plans.live()) {
    while (const auto request = plan->acks().take(now)) {
      if (const auto sent = write_ack(*plan, *request, out, now)) return sent;
    }
  }
  if (const auto ack = state_.retired.take()) return write_retired_ack(*ack, out, now);
  if (const auto sent = write_refusal(out, now)) return sent;
  return write_answer(out, now);
}

std::optional<Outgoing> Transmitter::write_ack(Plan& plan, const hop::AckRequest& request,
                                               std::span<std::byte> out, Instant now) {
  aggregate::Tree& tree = plan.trees()[request.edge.tree];
  hop::InEdge& edge = tree.in(request.edge.index);
  const AckSource source = ack_source(edge, request.round);
  if (!request.is_urgent && source.receiver != nullptr && !source.ended) {
    hop::BlockReceiver& receiver = *source.receiver;
    const bool may_wait = receiver.owes_ack() && ack_may_wait(receiver, edge.peer, now);
    if (may_wait && plan.acks().postpone(request, now)) return std::nullopt;
    receiver.note_request(false);
  }
  if (!fill_ack(source, now)) return std::nullopt;
  const Round& round = state_.slot_of(request.round);
  const bool is_open = round.open && round.id == request.round;
  if (edge.is_push() && is_open && tree.allows_below(round.slot())) {
    ack_->flags |= wire::kFlagAllowed;
  }
  ack_->body.oldest_round =
      edge.is_push() ? state_.oldest_round() : tree.oldest_round(state_.oldest_round());
  const auto type = edge.is_push() ? wire::PacketType::kPushAck : wire::PacketType::kResultAck;
  // Blocks that came over another path get an ack of their own.
  if (source.receiver != nullptr && !source.ended && source.receiver->owes_ack()) {
    plan.acks().request(request.edge, request.round, now);
  }
  return write_filled_ack(type, header_of(edge.id, request.round), edge.peer, out, now);
}

Outgoing Transmitter::write_retired_ack(const RetiredPlan::Ack& request, std::span<std::byte> out,
                                        Instant now) {
  say_ended();
  // A plan that has ended knows nothing of the nodes below any more, but every round before its
  // activation has ended everywhere.
  ack_->body.oldest_round = state_.retired.activation();
  const hop::EdgeId edge{.epoch = state_.retired.epoch(), .tree = request.tree};
  return write_filled_ack(request.type, header_of(edge, request.round), request.peer, out, now);
}

wire::AckHeader Transmitter::header_of(const hop::EdgeId& edge, std::uint32_t round) const {
  return {.epoch = static_cast<std::uint16_t>(edge.epoch),
          .tree = edge.tree,
          .path = ack_->path,
          .round = round,
          .first_word = ack_->first_word};
}

/// Fills *ack_ for a round that has ended here without being closed: every block of the edge has
/// arrived.
void Transmitter::say_ended() {
  say_nothing();
  ack_->flags = wire::kFlagComplete | wire::kFlagEnded;
}

/// Writes *ack_, together with what goes to the peer in any ack.
Outgoing Transmitter::write_filled_ack(wire::PacketType type, const wire::AckHeader& header,
                                       hop::PeerIndex peer_index, std::span<std::byte> out,
                                       Instant now) {
  hop::BlockReceiver::Ack& ack = *ack_;
  hop::Peer& peer = state_.peers[peer_index];
  ack.body.loss = static_cast<std::uint16_t>(
      std::min(peer.loss_here.share() / wire::kLossUnit, double{UINT16_MAX}));
  ack.body.marked_packets = peer.marks_received[header.path];
  const wire::Grant grant = state_.incoming.grant_of(peer_index);
  ack.body.unscheduled_blocks = grant.unscheduled_blocks;
  ack.body.total_blocks = grant.total_blocks;
  if (state_.links != nullptr) {
    if (state_.links->wants_train(peer.node, now)) ack.flags |= wire::kFlagSound;
    if (state_.links->is_slow(peer.node, now)) ack.flags |= wire::kFlagSlow;
  }
  const std::size_t bytes = wire::write_ack(out, envelope_of(type, ack.flags, now), header,
                                            ack.body, {ack.words.data(), ack.word_count});
  ++state_.counters.acks_sent;
  return finish(peer, out.first(bytes));
}

/// Whether an ack that its request calls due may wait: an earlier ack has said what the request was
/// about, or blocks keep coming and none is missing. The sender's window has room for what it sends
/// meanwhile if it knows its rate. This node takes the way to the sender for the way from it.
///
/// Blocks on other paths are paced by flows of their own, and a group goes on only when all its
/// members have acked.
bool Transmitter::ack_may_wait(const hop::BlockReceiver& receiver, hop::PeerIndex from,
                               Instant now) const {
  const hop::Peer& peer = std::as_const(state_.peers)[from];
  const Duration rtt = peer.flow.min_rtt();
  const bool has_room = state_.config.congestion.controller == ControllerKind::kDelay &&
                        !state_.config.grants && peer.flow.knows_link_rate();
  const bool is_short = rtt > Duration{} && rtt < hop::kSteadyPath;
  if (!has_room || !is_short || receiver.has_other_paths()) return false;
  if (receiver.may_look_later(now)) return true;
  return now - peer.gap_at > hop::kMaxSteadyAckDelay && receiver.is_steady(now);
}

Transmitter::AckSource Transmitter::ack_source(hop::InEdge& edge, std::uint32_t id) {
  if (!edge.stream.empty()) {
    hop::StreamSlot& slot = edge.stream[id % kRoundSlots];
    if (slot.is_of(id)) return {.receiver = &slot.receiver};
    if (slot.used && is_older(id, slot.round)) return {};
  }
  const Round& round = state_.slot_of(id);
  const bool is_open = round.open && round.id == id;
  const bool ended_last = !round.open && round.id - kRoundSlots == id;
  if (!is_open && !ended_last) return {};
  return {.receiver = &edge.receivers[id % kRoundSlots], .ended = ended_last};
}

/// Fills *ack_ with the state of the edge's blocks in this round. False if an earlier ack has said
/// everything, or if it is too early for an ack.
bool Transmitter::fill_ack(const AckSource& source, Instant now) {
  hop::BlockReceiver* receiver = source.receiver;
  if (receiver != nullptr && !source.ended) {
    if (!receiver->owes_ack()) return false;
    receiver->fill_ack(*ack_, now);
  } else if (receiver != nullptr &&
             (receiver->closed() || receiver->has_news_of(hop::kGroupPath))) {
    // Without the echo nobody would learn that the block of a one-block round came by the group.
    receiver->fill_ack(*ack_, now);
    ack_->flags |= wire::kFlagEnded;
  } else {
    say_ended();
  }
  return true;
}

Outgoing Transmitter::write_grant(hop::PeerIndex peer, std::span<std::byte> out, Instant now) {
  wire::Grant grant = state_.incoming.grant_of(peer);
  grant.epoch = static_cast<std::uint16_t>(state_.plans.newest().epoch());
  const std::size_t bytes =
      wire::write_grant(out, envelope_of(wire::PacketType::kGrant, 0, now), grant);
  ++state_.counters.grants_sent;
  return finish(state_.peers[peer], out.first(bytes));
}

Transmitter::Work Transmitter::next_work(const hop::Peer& peer) const {
  Work best;
  for (hop::OutEdge* edge : peer.edges) {
    for (unsigned bits = edge->queued; bits != 0; bits &= bits - 1) {
      const Work work{edge, static_cast<std::size_t>(std::countr_zero(bits))};
      const bool is_copy = edge->senders[work.slot].has_only_copies();
      if (is_copy && state_.withholds_copies(edge->rounds[work.slot])) continue;
      if (best.edge == nullptr || goes_before(work, best)) best = work;
    }
  }
  return best;
}

/// Whether this is the last new push of a round whose blocks are copied. Most nodes owe a root only
/// one push, which is empty. Before that push the root sends the node no results, and it sends the
/// tree's first block to nobody. So the push goes before the blocks of all rounds: if it waited for
/// the results of an older round, links would be idle when that round ends.
bool Transmitter::opens_a_tree(const Work& work) const {
  return work.edge->is_push() && work.edge->senders[work.slot].unsent() == 1 &&
         !all_contribute(state_.rounds[work.slot].geometry.operation);
}

bool Transmitter::goes_before(const Work& work, const Work& other) const {
  const std::uint32_t round = work.edge->rounds[work.slot];
  const std::uint32_t than = other.edge->rounds[other.slot];
  const bool has_originals = work.edge->senders[work.slot].has_originals();
  if (has_originals != other.edge->senders[other.slot].has_originals()) return has_originals;
  if (opens_a_tree(work) != opens_a_tree(other)) return opens_a_tree(work);
  if (round == than) {
    // Results of sums go first, because they let a round finish. Where blocks are copied, pushes
    // go first: a root can pass them on. Critical blocks come next. Trees that share a path
    // advance together, so that links that only one of them uses are never idle.
    if (work.edge->is_push() != other.edge->is_push()) {
      return work.edge->is_push() != all_contribute(state_.rounds[work.slot].geometry.operation);
    }
    const hop::BlockSender& sender = work.edge->senders[work.slot];
    const hop::BlockSender& before = other.edge->senders[other.slot];
    if (sender.has_urgent() != before.has_urgent()) return sender.has_urgent();
    return sender.is_behind(before);
  }
  return round_goes_before(work.slot, other.slot);
}

/// Whether the open round in `slot` goes before the one in `other`.
bool Transmitter::round_goes_before(std::size_t slot, std::size_t other) const {
  const std::uint32_t round = state_.rounds[slot].id;
  const std::uint32_t than = state_.rounds[other].id;
  if (!state_.config.forward_order) return is_older(round, than);
  if (state_.iteration->is_earlier(slot, other)) return true;
  return is_older(than, round) && !state_.iteration->is_earlier(other, slot);
}

std::optional<Outgoing> Transmitter::poll_data(std::span<std::byte> out, Instant now) {
  // Groups and peers take turns while both have blocks to send.
  const bool peers_first = std::exchange(group_had_turn_, false);
  if (!peers_first) {
    if (const auto sent = poll_groups(out, now)) return sent;
  }
  if (const auto sent = poll_peers(out, now, peers_first)) return sent;
  return peers_first ? poll_groups(out, now) : std::nullopt;
}

/// `groups_wait`: blocks for groups may be ready to send, and have not been considered yet.
std::optional<Outgoing> Transmitter::poll_peers(std::span<std::byte> out, Instant now,
                                                bool groups_wait) {
  const Bitmap& to_poll = state_.peers.to_poll();
  const std::size_t first = next_peer_;
  for (std::size_t i = to_poll.next_set(first); i != Bitmap::kNone; i = to_poll.next_set(i + 1)) {
    if (const auto sent = poll_peer(i, out, now, groups_wait)) return sent;
  }
  for (std::size_t i = to_poll.next_set(0); i < first; i = to_poll.next_set(i + 1)) {
    if (const auto sent = poll_peer(i, out, now, groups_wait)) return sent;
  }
  return std::nullopt;
}

std::optional<Outgoing> Transmitter::poll_peer(std::size_t index, std::span<std::byte> out,
                                               Instant now, bool groups_wait) {
  hop::Peer& peer = state_.peers.all()[index];
  if (next_send_to(peer) > now) {
    if (peer.detours == nullptr) return std::nullopt;
    const Detouring detour = next_detour(peer);
    if (detour.at > now) return std::nullopt;
    next_peer_ = index + 1;
    return write_block(detour.work, detour.path, out, now);
  }
  const Work work = next_work(peer);
  const bool is_sounding = peer.flow.sounding().is_on();
  const bool waits_for_turn = work.edge == nullptr && groups_wait && waits_for_group(peer);
  if (work.edge == nullptr && !waits_for_turn) peer.note_app_limited();
  if (work.edge == nullptr && !is_sounding) {
    // Copies are withheld only for a time, and nothing says when it is over.
    if (!waits_for_turn && !peer.has_queued()) state_.peers.to_poll().clear(index);
    return std::nullopt;
  }
  // Packets of a sounding go back to back.
  next_peer_ = is_sounding ? index : index + 1;
  return work.edge != nullptr ? write_block(work, hop::kDirectPath, out, now)
                              : write_sounding(peer, out, now);
}

void Transmitter::probe(Instant now) {
  begin_soundings(now);
  for (hop::Peer& peer : state_.peers.all()) {
    peer.flow.on_tick(now);
    if (peer.detours != nullptr) reclaim(peer, now);
    for (hop::OutEdge* edge : peer.edges) {
      if (edge->waiting != 0) probe_edge(*edge, now);
    }
  }
}

/// Checks each round whose blocks have not been answered for some time. If the peer has answered
/// later packets, these blocks are lost; as long as they counted as in flight, they would fill the
/// window. Otherwise, after a longer time, one of them is sent as a probe.
void Transmitter::probe_edge(hop::OutEdge& edge, Instant now) {
  const hop::Flow& flow = state_.peers[edge.peer].flow;
  const std::uint32_t now_us = hop::clock_us(now);
  for (unsigned bits = edge.waiting; bits != 0; bits &= bits - 1) {
    const auto slot = static_cast<std::size_t>(std::countr_zero(bits));
    const auto silent = Duration::us(static_cast<std::int32_t>(now_us - edge.active_us[slot]));
    const Duration overtaking = flow.overtaking_time();
    const bool may_be_refused = state_.rounds[slot].streamed;
    if (silent < probe_pause(overtaking, edge.backoff[slot], may_be_refused)) continue;
    // A sender knows only a bound on the time at which its oldest block was sent.
    bool is_lost =
        flow.is_overtaken(now, edge.senders[slot].oldest_us()) &&
        state_.find_lost(edge, slot, hop::kDirectPath, flow.newest_echo_us(), overtaking, now);
    const bool is_group_lost = find_lost_to_group(edge, slot, overtaking, now);
    is_lost = is_lost || is_group_lost;
    const Duration pause = probe_pause(flow.probe_timeout(), edge.backoff[slot], may_be_refused);
    if (!is_lost && silent < pause) continue;
    edge.active_us[slot] = now_us;
    edge.backoff[slot] = std::min<std::uint8_t>(kMaxBackoff, edge.backoff[slot] + 1);
    if (!is_lost) ask(edge, slot, now);
    edge.refresh(slot);
  }
}

/// Sends the block that has waited longest again, and whatever else may wake the peer.
void Transmitter::ask(hop::OutEdge& edge, std::size_t slot, Instant now) {
  hop::Peer& peer = state_.peers[edge.peer];
  const hop::PathBlocks queued = edge.senders[slot].probe(hop::clock_us(now));
  peer.on_forgotten(queued);
  if (queued.to_group > 0) state_.on_group_unanswered(edge, slot, now);
  if (queued > 0) peer.flow.on_probe();
  state_.counters.probes += queued;
  if (edge.backoff[slot] > kSilentAfterProbes) peer.flow.on_silence(now);
  if (edge.is_push()) return;
  Plan& plan = *state_.plans.find(edge.id.epoch);
  plan.trees()[edge.id.tree].repeat_closing(plan.context(), edge.id.index, slot, edge.rounds[slot],
                                            now);
}

bool Transmitter::any_in_flight() const {
  const auto peers = std::as_const(state_.peers).all();
  return std::any_of(peers.begin(), peers.end(), [](const hop::Peer& peer) {
    return std::any_of(peer.edges.begin(), peer.edges.end(),
                       [](const hop::OutEdge* edge) { return edge->waiting != 0; });
  });
}

Instant Transmitter::next_ack() const {
  const bool at_once =
      state_.retired.owes_ack() || !state_.sounders.empty() || !state_.refused.empty();
  Instant due = at_once ? Instant() : Instant::never();
  for (const auto& plan : state_.plans.live()) due = std::min(due, plan->acks().next_due());
  return due;
}

Instant Transmitter::next_data() const {
  Instant deadline = Instant::never();
  const Bitmap& to_poll = state_.peers.to_poll();
  for (std::size_t i = to_poll.next_set(0); i != Bitmap::kNone; i = to_poll.next_set(i + 1)) {
    const hop::Peer& peer = std::as_const(state_.peers).all()[i];
    if (next_work(peer).edge == nullptr && !peer.flow.sounding().is_on()) continue;
    deadline = std::min(deadline, next_send_to(peer));
    if (peer.detours != nullptr) deadline = std::min(deadline, next_detour(peer).at);
  }
  return std::min(deadline, next_group());
}

}  // namespace gradplane::job
