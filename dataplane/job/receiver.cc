// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/job/receiver.h"

#include <algorithm>

#include "dataplane/hop/clock.h"
#include "dataplane/job/statement.h"

namespace gradplane::job {

using hop::Drop;

Receiver::Receiver(State& state, Rounds& rounds, Streams& streams, Watchdog& watchdog)
    : state_(state),
      rounds_(rounds),
      streams_(streams),
      acks_(state, rounds, watchdog),
      covered_(std::make_unique<std::array<std::uint64_t, wire::kMaxCoverageWords>>()) {}

std::optional<awareness::Told> Receiver::handle(std::uint16_t from, const wire::Envelope& envelope,
                                                std::span<const std::byte> datagram,
                                                bool congestion_experienced, Instant now) {
  const auto drop = [this](Drop why) {
    state_.counters.drop(why);
    return std::nullopt;
  };
  const hop::PeerIndex index = state_.peers.find(from);
  if (index == hop::kNoPeer) return drop(Drop::kNotPeer);
  if (wire::is_for_group(envelope)) {
    return handle_for_group(index, envelope, datagram, congestion_experienced, now);
  }
  hop::Peer& peer = state_.peers[index];
  const std::uint64_t number = peer.packets_received.restore(envelope.number);
  const auto opened = open(datagram, number, peer);
  if (!opened) return drop(Drop::kBadTag);
  constexpr auto kGood = wire::ParseError::kNone;
  Duration round_trip;
  if (wire::is_block(envelope.type) || wire::is_parity(envelope.type)) {
    if (wire::read_block(envelope, *opened, block_) != kGood) return drop(Drop::kMalformed);
    if (!is_new(block_.header.epoch, number, peer, now)) return std::nullopt;
    if (wire::is_routed(envelope)) {
      handle_routed(from, datagram, congestion_experienced, now);
      // The packet number counts packets on this link, so it must not look like a gap. The sending
      // time is that of the first link of the route, so it tells nothing about this link.
      const awareness::LossCount lost = peer.packets_lost.on_packet(number);
      if (envelope.sender != from) return std::nullopt;
      return awareness::Told{.loss = lost, .round_trip = {}};
    }
    path_ = hop::kDirectPath;
    if (block_.has_hop) round_trip = wire::kRoundTripUnit * std::int64_t{block_.hop.round_trip};
    const bool is_parity = wire::is_parity(envelope.type);
    is_parity ? handle_parity(block_, index, congestion_experienced, now)
              : handle_block(block_, index, congestion_experienced, now);
  } else if (wire::is_ack(envelope.type)) {
    if (wire::read_ack(envelope, *opened, ack_) != kGood) return drop(Drop::kMalformed);
    if (!is_new(ack_.header.epoch, number, peer, now)) return std::nullopt;
    peer.heard_at = now;
    acks_.handle(ack_, index, now);
  } else if (envelope.type == wire::PacketType::kSounding) {
    wire::Sounding sounding;
    if (wire::read_sounding(envelope, *opened, sounding) != kGood) return drop(Drop::kMalformed);
    if (!is_new(sounding.epoch, number, peer, now)) return std::nullopt;
    if (!peer.is_in_use()) return drop(Drop::kNotPeer);
    round_trip = wire::kRoundTripUnit * std::int64_t{sounding.round_trip};
    handle_sounding(envelope, sounding, index, now);
  } else {
    wire::Grant grant;
    if (wire::read_grant(*opened, grant) != kGood) return drop(Drop::kMalformed);
    if (!is_new(grant.epoch, number, peer, now)) return std::nullopt;
    handle_grant(grant, peer);
  }
  return awareness::Told{.loss = peer.packets_lost.on_packet(number), .round_trip = round_trip};
}

/// Handles a block that has come over a route: it is for this node, or is relayed. The node before
/// this one on the route has written the packet's number and tag.
void Receiver::handle_routed(std::uint16_t from, std::span<const std::byte> datagram,
                             bool congestion_experienced, Instant now) {
  const auto place = place_on_route(block_, state_.config.self, from);
  if (!place) return state_.counters.drop(Drop::kBadRoute);
  const std::uint16_t sender = block_.envelope->sender;
  Plan* plan = state_.plans.find(block_.header.epoch);
  const hop::PeerIndex peer = state_.peers.find(sender);
  if (plan == nullptr) {
    const bool is_ours = place->is_end && peer != hop::kNoPeer;
    return is_ours ? handle_retired(block_, peer) : state_.counters.drop(Drop::kUnknownRoute);
  }
  const auto path = plan->routes().path_of(sender, block_.extension.route);
  if (!path) return state_.counters.drop(Drop::kUnknownRoute);
  if (!place->is_end) return relay(*plan, *place, datagram, now);
  if (peer == hop::kNoPeer) return state_.counters.drop(Drop::kNotPeer);
  path_ = *path;
  handle_block(block_, peer, congestion_experienced, now);
}

void Receiver::relay(Plan& plan, const RoutePlace& place, std::span<const std::byte> datagram,
                     Instant now) {
  state_.incoming.on_relayed(datagram.size(), now);
  const auto next = static_cast<std::uint8_t>(place.next + 1);
  const std::uint16_t to = block_.extension.route[next];
  if (plan.relayed().push(*block_.envelope, datagram, to, next)) return;
  state_.counters.drop(Drop::kRelayFull);
}

/// Handles a sounding packet, or the answer to one of ours. Of each sounding, the first packet that
/// comes is answered, because it has waited least in queues.
void Receiver::handle_sounding(const wire::Envelope& envelope, const wire::Sounding& sounding,
                               hop::PeerIndex index, Instant now) {
  hop::Peer& peer = state_.peers[index];
  if (!sounding.is_answer) {
    ++state_.counters.sounding_packets_received;
    if (sounding.number == peer.heard_sounding) return;
    peer.heard_sounding = sounding.number;
    peer.heard_sounding_us = envelope.timestamp_us;
    if (!peer.owes_answer) peer.owes_answer = state_.sounders.push(index);
    return;
  }
  ++state_.counters.acks_received;
  awareness::Sounding& ours = peer.flow.sounding();
  const auto rtt_us = static_cast<std::int32_t>(hop::clock_us(now) - sounding.echo_us);
  if (sounding.number != ours.number || rtt_us <= 0) return;
  ours.round_trip = std::min(Duration::us(rtt_us), hop::kMaxRtt);
  // If blocks go to the peer, their acks say whether it has measured the link.
  if (!peer.edges.empty()) return;
  ours.is_slow = (envelope.flags & wire::kFlagSlow) != 0;
  ours.on_use();
}

void Receiver::handle_grant(const wire::Grant& grant, hop::Peer& peer) {
  if (state_.plans.find(grant.epoch) == nullptr) return state_.counters.drop(Drop::kWrongEpoch);
  ++state_.counters.grants_received;
  state_.on_granted(grant.total_blocks, grant.unscheduled_blocks, peer);
}

/// Verifies a packet and returns it without its tag. Of a packet that nobody with the key has
/// written for this node, nothing after the envelope is read.
std::optional<std::span<const std::byte>> Receiver::open(std::span<const std::byte> datagram,
                                                         std::uint64_t number,
                                                         const hop::Peer& peer) const {
  if (!state_.config.authenticate) return wire::open_unsealed(datagram);
  return wire::open(datagram, *peer.key,
                    {.writer = peer.node,
                     .receiver = wire::Receiver::node(state_.config.self),
                     .number = number});
}

/// Whether a packet of this plan comes for the first time. A packet of an earlier job with the same
/// id must not move the replay window. If packets are not authenticated, its number would otherwise
/// keep out all packets of a peer that has begun again with number 1.
bool Receiver::is_new(std::uint16_t epoch, std::uint64_t number, hop::Peer& peer, Instant now) {
  if (state_.plans.find(epoch) == nullptr && !state_.retired.is(epoch)) {
    state_.counters.drop(Drop::kWrongEpoch);
    return false;
  }
  if (peer.packets_received.leaves_gap(number)) peer.gap_at = now;
  if (!peer.packets_received.accept(number)) {
    state_.counters.drop(Drop::kReplayed);
    return false;
  }
  peer.loss_here.on_packet(number);
  return true;
}

/// Acks a block of a plan that has ended here. Its sender has not heard that this node has
/// everything.
void Receiver::handle_retired(const wire::BlockPacket& packet, hop::PeerIndex peer) {
  const wire::BlockHeader& h = packet.header;
  if (!state_.retired.is(h.epoch) || !state_.retired.carried(h.round)) {
    return state_.counters.drop(Drop::kWrongEpoch);
  }
  const bool is_push = wire::block_type(packet.envelope->type) == wire::PacketType::kPush;
  const auto type = is_push ? wire::PacketType::kPushAck : wire::PacketType::kResultAck;
  state_.retired.owe({.peer = peer, .type = type, .tree = h.tree, .round = h.round});
  state_.counters.drop(Drop::kPastRound);
}

void Receiver::handle_block(const wire::BlockPacket& packet, hop::PeerIndex peer,
                            bool congestion_experienced, Instant now) {
  state_.peers[peer].heard_at = now;
  Plan* plan = state_.plans.find(packet.header.epoch);
  if (plan == nullptr) return handle_retired(packet, peer);
  if (packet.header.tree >= plan->trees().size()) return state_.counters.drop(Drop::kNotPeer);
  const std::size_t count = count_blocks(packet);
  if (congestion_experienced) {
    // The sender compares marks with the blocks that are acked.
    state_.peers[peer].marks_received[path_] += static_cast<std::uint32_t>(count);
    ++state_.counters.congestion_marks;
  }
  state_.incoming.on_packet(packet, peer, congestion_experienced, now);
  if (count == 1) return take_block(*plan, packet, peer, now);
  take_blocks(*plan, packet, count, peer, now);
}

}  // namespace gradplane::job
