// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Parity at the end of rounds on long lossy paths, and copies if parity does not pay.
#include <algorithm>

#include "dataplane/hop/clock.h"
#include "dataplane/job/transmitter.h"

namespace gradplane::job {

using aggregate::Tree;

namespace {

/// On a lossy path the end of a round is sent twice. This fraction of a round trip bounds how much
/// of it.
constexpr std::int64_t kTailShare = 4;

/// Spare rows. The number of rows is chosen when a round begins, and the path may lose more, or
/// hold more, when the round ends.
constexpr std::size_t kSpareRows = 2;

/// The most blocks that may be in flight, as far as is known: what the flow lets pass in the time
/// in which a loss would be repaired.
std::uint32_t blocks_on_way(const hop::Flow& flow, std::size_t block_bytes,
                            std::size_t blocks_per_packet, std::uint32_t blocks) {
  const Duration span = flow.smoothed_rtt() + flow.reorder_window();
  const double bits = static_cast<double>(flow.allowed_bits_per_second()) * span.to_seconds();
  const std::size_t packet_bytes = block_bytes * blocks_per_packet + hop::kWireOverheadBytes;
  const double wire_bits =
      static_cast<double>(packet_bytes * 8) / static_cast<double>(blocks_per_packet);
  const double most = bits <= 0 ? blocks : std::min<double>(blocks, bits / wire_bits + 1);
  return static_cast<std::uint32_t>(most);
}

}  // namespace

/// The bytes of a full block in a wire type.
std::size_t Transmitter::full_bytes(WireType type) const {
  const std::size_t bytes = state_.config.block_bytes;
  if (type == WireType::kElements) return bytes;
  return wire_bytes(type, ElementType::kFloat32, bytes / element_bytes(ElementType::kFloat32));
}

/// How many full blocks in this wire type share a packet; see one_more().
std::size_t Transmitter::blocks_per_packet(WireType type) const {
  return state_.config.grants ? 1 : state_.config.block_bytes / full_bytes(type);
}

/// The number of rows for a round of this many blocks to the peer, none in a narrower type; 0 if it
/// needs none. If the flow lets so many blocks pass that no number of rows would do, it is the
/// largest number, because fewer blocks may be in flight at the end of the round.
std::size_t Transmitter::parity_rows(const hop::Peer& peer, std::uint32_t blocks,
                                     WireType narrowest) const {
  // A controller that slows down upon loss must see losses. `delay` is one of these, too, if
  // nothing else bounds its window.
  const ControllerKind controller = state_.config.congestion.controller;
  if (!ignores_random_loss(controller)) return 0;
  if (controller == ControllerKind::kDelay && !peer.flow.knows_link_rate()) return 0;
  if (peer.flow.min_rtt() < state_.config.parity_from) return 0;
  const std::size_t at_once = blocks_per_packet(narrowest);
  if (peer.loss_there < hop::kMinParityLoss || blocks < hop::kMinParityPackets * at_once) return 0;
  const std::size_t rows = hop::parity_rows_for(
      blocks_on_way(peer.flow, full_bytes(narrowest), at_once, blocks), peer.loss_there, at_once);
  return rows == 0 ? hop::kMaxParityRows : std::min(rows + kSpareRows, hop::kMaxParityRows);
}

/// Called when the first block of a round goes over the edge. Results of one tree are the same for
/// all children, so the children share the rows.
hop::Parity* Transmitter::begin_parity(hop::OutEdge& edge, std::size_t slot,
                                       const Tree::Outbound& sent) {
  const Round& round = state_.rounds[slot];
  if (round.geometry.operation != Operation::kAllReduce) return nullptr;
  const std::uint32_t blocks = edge.senders[slot].range().size();
  // Later blocks may be in a narrower type than the first one.
  const WireType narrowest = round.narrows() ? round.bucket->narrowest() : sent.wire;
  std::size_t rows = parity_rows(state_.peers[edge.peer], blocks, narrowest);
  if (edge.is_push()) return rows == 0 ? nullptr : state_.parities.take(rows, blocks);
  if (rows == 0 && edge.seats[slot].group == nullptr) return nullptr;
  Tree& tree = state_.plan_of(round).trees()[edge.id.tree];
  for (const hop::OutEdge& other : tree.child_results()) {
    if (other.parity[slot] != nullptr) return hop::ParityTable::share(other.parity[slot]);
    rows = std::max(rows, parity_rows(state_.peers[other.peer], blocks, narrowest));
  }
  return rows == 0 ? nullptr : state_.parities.take(rows, blocks);
}

/// Adds a block that is being sent to the rows of its round. Returns the number of rows that its
/// packet must name.
std::uint8_t Transmitter::add_to_parity(hop::OutEdge& edge, std::size_t slot, std::uint32_t block,
                                        const Tree::Outbound& sent) {
  const std::uint16_t bit = hop::OutEdge::bit(slot);
  if ((edge.parity_begun & bit) == 0) {
    edge.parity_begun = static_cast<std::uint16_t>(edge.parity_begun | bit);
    edge.parity[slot] = begin_parity(edge, slot, sent);
  }
  hop::Parity* parity = edge.parity[slot];
  if (parity == nullptr) return 0;
  // A recovered block has no header of its own, so it cannot say who is missing.
  if (sent.partial) parity->spoil();
  const auto number = block - edge.senders[slot].range().begin;
  if (parity->rows() == 0 || parity->has(number)) return static_cast<std::uint8_t>(parity->rows());
  std::span<const std::byte> bytes = sent.bytes;
  if (sent.is_narrowed_late) {
    sent.write(narrowed_.data());
    bytes = std::span(narrowed_).first(sent.size());
  }
  parity->add(number, bytes, sent.wire);
  return static_cast<std::uint8_t>(parity->rows());
}

/// On a long lossy path, parity follows the end of a round, or the end is sent twice.
void Transmitter::guard_tail(hop::OutEdge& edge, std::size_t slot, Instant now) const {
  hop::BlockSender& sender = edge.senders[slot];
  const hop::Peer& peer = state_.peers[edge.peer];
  if (!sender.all_sent() || sender.has_originals()) return;
  const hop::Parity* parity = edge.parity[slot];
  const std::uint32_t on_way = sender.in_flight();
  const std::size_t at_once = parity == nullptr ? 1 : blocks_per_packet(parity->narrowest());
  if (parity != nullptr && parity->added() == sender.range().size() &&
      on_way >= hop::kMinParityPackets * at_once) {
    const std::size_t rows = hop::parity_rows_for(on_way, peer.loss_there, at_once);
    // Rows that wait for acks come no sooner than a retransmission, and would only delay it.
    const bool has_room = peer.flow.in_flight() + rows <= peer.flow.window();
    if (rows > 0 && has_room) return sender.queue_parity(std::min(rows, parity->rows()));
  }
  // is_lossy() is the sender's own count. The receiver reports half a lost packet even on a new
  // path without loss.
  if (peer.flow.is_lossy() && peer.flow.min_rtt() >= hop::kLongPath && !sender.has_queued())
    sender.copy_tail(hop::clock_us(now), peer.flow.min_rtt() / kTailShare);
}

/// Writes row number `row` of the blocks in flight to the peer.
Outgoing Transmitter::write_parity(const Work& work, std::uint32_t row, std::span<std::byte> out,
                                   Instant now) {
  hop::OutEdge& edge = *work.edge;
  hop::BlockSender& sender = edge.senders[work.slot];
  hop::Peer& peer = state_.peers[edge.peer];
  const Round& round = state_.rounds[work.slot];
  Plan& plan = state_.plan_of(round);
  const Tree& tree = plan.trees()[edge.id.tree];
  const hop::Parity& parity = *edge.parity[work.slot];
  const std::uint32_t first = sender.range().begin;
  wire::BlockHeader h = header_of(work, row);
  h.wire_type = parity.narrowest();
  h.contributors = h.wire_type == WireType::kElements ? bytes_of(work, first).contributors
                                                      : wire::kParityTypesBit | parity.types(row);
  std::uint8_t flags = 0;
  const bool is_last = sender.parity_left() == 0;
  if (is_last) flags |= wire::kFlagLast;
  if (edge.is_push() && tree.is_bounded(round)) flags |= wire::kFlagBounded;
  if (edge.is_push()) h.patience = wire::patience_code(tree.patience(round, now));
  if (is_last) {
    const Duration proof = peer.flow.reorder_window() + hop::kMaxAckDelay;
    sender.await_parity(hop::clock_us(now - proof));
  }
  edge.refresh(work.slot);
  const std::span<const std::byte> payload = parity.row(row).first(parity.longest_bytes());
  const std::size_t wire_bytes = payload.size() + hop::kWireOverheadBytes;
  peer.credit.on_sent(now, wire_bytes);
  const wire::HopFeedback feedback{
      .sent_blocks = peer.credit.sent(),
      .waiting_blocks = static_cast<std::uint16_t>(
          std::min<std::uint32_t>(state_.blocks_waiting(peer), UINT16_MAX)),
      .round_trip = wire::round_trip_code(peer.flow.latest_rtt())};
  const auto type =
      edge.is_push() ? wire::PacketType::kPushParity : wire::PacketType::kResultParity;
  wire::Envelope envelope = envelope_of(type, flags, now);
  envelope.parity_rows = static_cast<std::uint8_t>(parity.rows());
  const std::size_t payload_at = wire::write_block(out, envelope, h, &feedback);
  std::copy(payload.begin(), payload.end(), out.begin() + static_cast<std::ptrdiff_t>(payload_at));
  peer.flow.on_copy_sent(now, wire_bytes);
  edge.active_us[work.slot] = hop::clock_us(now);
  ++state_.counters.parity_sent;
  return finish(peer, out.first(payload_at + payload.size() + wire::kTagBytes));
}

}  // namespace gradplane::job
