// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Soundings of a job, how a flow is charged for sent packets, and what limits it.
#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "dataplane/hop/clock.h"
#include "dataplane/job/transmitter.h"
#include "dataplane/wire/sounding.h"

namespace gradplane::job {

/// Begins the sounding that has been due for longest, if any may begin. It goes to a peer that gets
/// blocks and asks for a train of them, or over a link that no tree uses. Soundings go only while
/// rounds are open, and only if neither receivers nor an operator have fixed how much this node may
/// send. If the rate of the peer's link is known, they go only under a plan that would change with
/// another rate. Of the cores that share a job only the first one sounds, because trains of two
/// cores would meet on the link.
void Transmitter::begin_soundings(Instant now) {
  const bool is_free =
      !state_.config.grants && state_.config.congestion.controller != ControllerKind::kFixed;
  if (!is_free || state_.open_rounds == 0 || state_.config.core.index > 0) return;
  hop::Peer* next = nullptr;
  const auto is_next = [&](const hop::Peer& peer, const awareness::SoundingCause& why) {
    const awareness::Sounding& sounding = peer.flow.sounding();
    const bool is_first = next == nullptr || sounding.began < next->flow.sounding().began;
    return is_first && state_.soundings.may_begin(now, sounding, why);
  };
  const bool follows_network = state_.plans.newest().follows_network();
  // If links to this node change, the links from it may have changed, too.
  const bool alarm = state_.links != nullptr && state_.links->alarm(now);
  for (hop::Peer& peer : state_.peers.all()) {
    if (peer.edges.empty() || (!peer.wants_sounding && !alarm)) continue;
    if (peer.flow.knows_link_rate() && !follows_network) continue;
    const awareness::SoundingCause why{.is_asked = peer.wants_sounding, .alarm = alarm};
    if (is_next(peer, why) && peer.flow.is_worth_sounding(now)) next = &peer;
  }
  for (const hop::PeerIndex index : state_.plans.newest().sounded()) {
    hop::Peer& peer = state_.peers[index];
    const awareness::SoundingCause why{.is_used = false, .is_asked = false, .alarm = alarm};
    if (peer.edges.empty() && is_next(peer, why)) next = &peer;
  }
  if (next == nullptr) return;
  state_.soundings.begin(now, next->flow.sounding());
  state_.peers.to_poll().set(state_.peers.find(next->node).index());
}

/// Writes a packet of padding for a sounding that has too few blocks.
Outgoing Transmitter::write_sounding(hop::Peer& peer, std::span<std::byte> out, Instant now) {
  awareness::Sounding& sounding = peer.flow.sounding();
  const std::size_t packet_bytes = wire::sounding_bytes(state_.config.block_bytes);
  // A flow without blocks has only the round trips of an earlier plan, so the last answer to a
  // sounding is better.
  const bool is_known = sounding.round_trip > Duration{} && peer.edges.empty();
  const Duration round_trip = is_known ? sounding.round_trip : peer.flow.latest_rtt();
  const wire::Sounding said{.epoch = static_cast<std::uint16_t>(state_.plans.newest().epoch()),
                            .round_trip = wire::round_trip_code(round_trip),
                            .number = sounding.number};
  const std::size_t bytes = wire::write_sounding(
      out.first(packet_bytes), envelope_of(wire::PacketType::kSounding, 0, now), said);
  peer.flow.note_sounding(now);
  peer.flow.on_padding_sent(now, bytes + hop::kFrameOverheadBytes);
  state_.soundings.on_sent(sounding);
  ++state_.counters.sounding_packets_sent;
  return finish(peer, out.first(bytes));
}

std::optional<Outgoing> Transmitter::write_answer(std::span<std::byte> out, Instant now) {
  while (!state_.sounders.empty()) {
    hop::Peer& peer = state_.peers[state_.sounders.front()];
    state_.sounders.pop();
    if (!std::exchange(peer.owes_answer, false) || !peer.is_in_use()) continue;
    const bool is_slow = state_.links != nullptr && state_.links->is_slow(peer.node, now);
    const wire::Sounding said{.epoch = static_cast<std::uint16_t>(state_.plans.newest().epoch()),
                              .number = peer.heard_sounding,
                              .echo_us = peer.heard_sounding_us,
                              .is_answer = true};
    std::uint8_t flags = wire::kFlagAnswer;
    if (is_slow) flags |= wire::kFlagSlow;
    const std::size_t bytes =
        wire::write_sounding(out, envelope_of(wire::PacketType::kSounding, flags, now), said);
    ++state_.counters.acks_sent;
    return finish(peer, out.first(bytes));
  }
  return std::nullopt;
}

void Transmitter::say_nothing() {
  ack_->flags = 0;
  ack_->path = hop::kDirectPath;
  ack_->first_word = 0;
  ack_->word_count = 0;
  ack_->body = {};
}

/// Writes an ack that echoes nothing and names no block. It says that a push has come too early to
/// be taken. With an echo the sender would take its blocks for lost, and send them again and again.
std::optional<Outgoing> Transmitter::write_refusal(std::span<std::byte> out, Instant now) {
  while (!state_.refused.empty()) {
    const hop::PeerIndex index = state_.refused.front();
    state_.refused.pop();
    const hop::Peer::Refused push = std::exchange(state_.peers[index].refused, {});
    if (!push.is_owed || !state_.peers[index].is_in_use()) continue;
    say_nothing();
    ack_->body.oldest_round = state_.oldest_round();
    const hop::EdgeId edge{.epoch = push.epoch, .tree = push.tree};
    return write_filled_ack(wire::PacketType::kPushAck, header_of(edge, push.round), index, out,
                            now);
  }
  return std::nullopt;
}

/// The next sending time is the later of those by grant and by window (docs/protocol.md, section
/// 6). Probes and soundings wait for neither, only for the peer's link.
Instant Transmitter::next_send_to(const hop::Peer& peer) const {
  if (peer.flow.sounding().is_on()) return peer.flow.link_free_at();
  if (!state_.config.grants || peer.flow.has_probe_due()) return peer.flow.next_send();
  return std::max(peer.flow.next_send(), peer.credit.next_send(peer.in_flight()));
}

/// Charges a block that is sent now to the flow of its path.
void Transmitter::note_sent(hop::Peer& peer, const hop::BlockSender::Pick& pick, std::size_t path,
                            std::size_t wire_bytes, Instant now) {
  hop::Flow& flow = peer.flow_of(path);
  if (flow.sounding().is_on()) {
    flow.note_sounding(now);
    ++state_.counters.blocks_of_soundings;
  }
  state_.soundings.on_sent(flow.sounding());
  if (pick.copy) return flow.on_copy_sent(now, wire_bytes);
  if (path != hop::kDirectPath) {
    hop::Detour& detour = (*peer.detours)[path - 1];
    if (detour.flow.in_flight() == 0) detour.heard_at = now;
    peer.flow.charge_link(now, wire_bytes);
    ++state_.counters.blocks_routed;
  }
  flow.on_sent(now, wire_bytes, pick.retransmission);
}

std::string_view flow_limit_name(FlowLimit limit) {
  constexpr std::array<std::string_view, 7> kNames = {
      "application", "peer", "window", "grant", "pacing", "peer link", "own link"};
  static_assert(kNames.size() == static_cast<std::size_t>(FlowLimit::kOwnLink) + 1);
  return kNames[static_cast<std::size_t>(limit)];
}

FlowLimit Transmitter::limit_of(const hop::Peer& peer, Instant now) const {
  bool is_silent = false;
  for (const hop::OutEdge* edge : peer.edges) {
    for (unsigned bits = edge->waiting; bits != 0; bits &= bits - 1) {
      const auto slot = static_cast<std::size_t>(std::countr_zero(bits));
      is_silent = is_silent || edge->backoff[slot] >= kSilentAfterProbes;
    }
  }
  if (is_silent) return FlowLimit::kPeer;
  if (next_work(peer).edge == nullptr && !waits_for_group(peer)) return FlowLimit::kApplication;
  if (peer.flow.window_is_full()) return FlowLimit::kWindow;
  if (state_.config.grants && peer.credit.next_send(peer.in_flight()) > now) {
    return FlowLimit::kGrant;
  }
  if (peer.flow.link_is_busy(now)) return FlowLimit::kPeerLink;
  return peer.flow.may_send(now) ? FlowLimit::kOwnLink : FlowLimit::kPacing;
}

}  // namespace gradplane::job
