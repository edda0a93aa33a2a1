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
    if (!is_new(block_.header.epoch, number, peer)) return std::nullopt;
    if (wire::is_routed(envelope)) {
      handle_routed(from, datagram, congestion_experienced, now);
      // Its number is of this link, and must not look like a gap. Its sending time is of the first
      // link of the route.
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
    if (!is_new(ack_.header.epoch, number, peer)) return std::nullopt;
    peer.heard_at = now;
    acks_.handle(ack_, index, now);
  } else if (envelope.type == wire::PacketType::kSounding) {
    wire::Sounding sounding;
    if (wire::read_sounding(envelope, *opened, sounding) != kGood) return drop(Drop::kMalformed);
    if (!is_new(sounding.epoch, number, peer)) return std::nullopt;
    if (!peer.is_in_use()) return drop(Drop::kNotPeer);
    round_trip = wire::kRoundTripUnit * std::int64_t{sounding.round_trip};
    handle_sounding(envelope, sounding, index, now);
  } else {
    wire::Grant grant;
    if (wire::read_grant(*opened, grant) != kGood) return drop(Drop::kMalformed);
    if (!is_new(grant.epoch, number, peer)) return std::nullopt;
    handle_grant(grant, peer);
  }
  return awareness::Told{.loss = peer.packets_lost.on_packet(number), .round_trip = round_trip};
}

/// A block that has come over a route: for this node, or to be sent on. The node before it on the
/// route has written the packet's number and tag for this one.
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

/// A packet that is only there to be measured, or the answer to one of ours. The first packet of a
/// sounding that comes is answered, because it has waited the least.
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
  // Where blocks go, their acks say whether the receiver has measured the link.
  if (!peer.edges.empty()) return;
  ours.is_slow = (envelope.flags & wire::kFlagSlow) != 0;
  ours.on_use();
}

void Receiver::handle_grant(const wire::Grant& grant, hop::Peer& peer) {
  if (state_.plans.find(grant.epoch) == nullptr) return state_.counters.drop(Drop::kWrongEpoch);
  ++state_.counters.grants_received;
  state_.on_granted(grant.total_blocks, grant.unscheduled_blocks, peer);
}

/// The packet without its tag: nothing behind the envelope is read of a packet that nobody with the
/// key has written for this node.
std::optional<std::span<const std::byte>> Receiver::open(std::span<const std::byte> datagram,
                                                         std::uint64_t number,
                                                         const hop::Peer& peer) const {
  if (!state_.config.authenticate) return wire::open_unsealed(datagram);
  return wire::open(datagram, *peer.key,
                    {.writer = peer.node,
                     .receiver = wire::Receiver::node(state_.config.self),
                     .number = number});
}

/// Whether a packet of this plan comes for the first time. A packet of an earlier job that had the
/// same id may not move the window: where nothing is authenticated, its number would keep out all
/// packets that a peer sends after it has begun again with number 1.
bool Receiver::is_new(std::uint16_t epoch, std::uint64_t number, hop::Peer& peer) {
  if (state_.plans.find(epoch) == nullptr && !state_.retired.is(epoch)) {
    state_.counters.drop(Drop::kWrongEpoch);
    return false;
  }
  if (!peer.packets_received.accept(number)) {
    state_.counters.drop(Drop::kReplayed);
    return false;
  }
  peer.loss_here.on_packet(number);
  return true;
}

/// A block of a plan that has ended here. Its sender has not heard that this node has everything.
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
  if (congestion_experienced) {
    ++state_.peers[peer].marks_received[path_];
    ++state_.counters.congestion_marks;
  }
  state_.incoming.on_packet(packet, peer, congestion_experienced, now);
  take_block(*plan, packet, peer, now);
}

void Receiver::take_block(Plan& plan, const wire::BlockPacket& packet, hop::PeerIndex peer,
                          Instant now) {
  const wire::BlockHeader& h = packet.header;
  // Packets of two plans never meet in one sum (I7).
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
  // A child takes no result of a round before it has contributed to it. Its first push shows that
  // it has. Until then results would fill its window, be dropped and be sent again and again, and
  // keep from it the results of the older rounds that it is at.
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

/// A block of a rank that is not in step with this node.
void Receiver::take_update(Plan& plan, hop::InEdge& edge, const wire::BlockPacket& packet,
                           Instant now) {
  hop::StreamSlot* slot = streams_.slot_of(plan, edge, packet, now);
  if (slot == nullptr) return;
  if (streams_.must_wait(*slot, packet.header.block)) {
    // The ack shows that this node is alive. It may be late, and another packet follows it.
    slot->receiver.note_packet({.timestamp_us = packet.envelope->timestamp_us, .path = path_}, now);
    plan.acks().request(edge.id, packet.header.round, false, now);
    return state_.counters.drop(Drop::kFutureRound);
  }
  if (!accept(plan, edge.id, slot->receiver, false, packet, now)) return;
  state_.watch.moved();
  streams_.add(plan, edge, *slot, packet, now);
}

/// Notes a packet's arrival at its edge and asks for the ack that is due. True when its block is
/// new, and wanted. `is_over`: nothing enters the block any more.
bool Receiver::accept(Plan& plan, const hop::EdgeId& edge, hop::BlockReceiver& receiver,
                      bool is_over, const wire::BlockPacket& packet, Instant now) {
  const wire::BlockHeader& h = packet.header;
  const bool is_closed = receiver.closed();
  const bool duplicate = is_closed || !receiver.accept(h.block);
  const bool late = is_closed || (!duplicate && is_over);
  const bool owed_before = receiver.owes_ack();
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
  if (at_once || !owed_before) plan.acks().request(edge, h.round, at_once, now);
  return !duplicate && !late;
}

/// The round that a block belongs to, opened by it if need be; nullptr when the block fits none.
Round* Receiver::round_for(Plan& plan, const wire::BlockPacket& packet, aggregate::HostSet covered,
                           const hop::EdgeId& edge, Instant now) {
  const wire::BlockHeader& h = packet.header;
  Round& round = state_.slot_of(h.round);
  const auto drop = [this](Drop reason) {
    state_.counters.drop(reason);
    return nullptr;
  };
  if (is_older(h.round, round.id)) {
    // The sender has not heard that this node has everything: say it again.
    plan.acks().request(edge, h.round, true, now);
    return drop(Drop::kPastRound);
  }
  // A small bucket may have no block for some tree. A node without ranks then never hears of the
  // round, and its slot waits for it. A sender that has turned the slot over proves that the round
  // has ended everywhere: it has the results of all blocks, and none of them came through us.
  const bool may_be_passed_by =
      !round.open && state_.ranks.empty() && knows_rounds_before(plan, h, edge);
  aggregate::Tree& tree = plan.trees()[h.tree];
  const bool is_too_early = (h.round != round.id && !may_be_passed_by) ||
                            (!round.open && !state_.plans.may_open(h.round));
  if (is_too_early) {
    state_.refuse_for_now(plan, tree.in(edge.index).peer, packet);
    return nullptr;
  }
  // Of an open round, nothing has to be computed for a packet that says the same.
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

/// Whether what comes over an edge tells of rounds that the slot held before. A rank that joined
/// the job with this plan took part in none of them, so it proves nothing of those that the plan
/// before still carries.
bool Receiver::knows_rounds_before(const Plan& plan, const wire::BlockHeader& h,
                                   const hop::EdgeId& edge) const {
  if (!state_.plans.is_switching() || &plan == state_.plans.live()[0].get()) return true;
  if (!plan.follows_other_plan(h.round)) return true;
  return aggregate::meets(plan.trees()[h.tree].hosts_of(edge.index), plan.hosts_of_plan_before());
}

/// A result can exist only after this node's own contribution to its block has left, or after a
/// node above has gone on without it.
bool Receiver::may_have_result(const aggregate::Tree& tree, const Round& round, std::uint32_t block,
                               aggregate::HostSet covered) const {
  if (!round.open || !state_.all_submitted(round)) return false;
  if (path_ == hop::kGroupPath && !is_heard_by_parent(tree, round, covered)) return false;
  return tree.may_have_result(round, block, covered);
}

/// The hosts whose ranks are in a block; nothing when the packet contradicts itself. A block that
/// lacks none of those that it could have names only their ranks: all, or the one whose block it
/// is. Another one must be of floating type and of a bucket, since only these are gathered under
/// bounds; or it is a push to which nobody below contributes.
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
    // The result proves that our contribution to it has arrived. The node whose block completes a
    // sum hears of it in no other way: the ack comes later.
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
