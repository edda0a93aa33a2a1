// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Parity at the end of rounds on long paths that lose blocks, and copies where it does not pay.
#include <algorithm>

#include "dataplane/hop/clock.h"
#include "dataplane/job/transmitter.h"

namespace gradplane::job {
namespace {

/// Where blocks get lost the end of a round goes twice, as much of it as fits this part of a round
/// trip.
constexpr std::int64_t kTailShare = 4;

/// Rows are chosen when a round begins. These are for a path that turns out to lose more, or to
/// hold more, at its end.
constexpr std::size_t kSpareRows = 2;

/// How many blocks are on their way at most, as far as is known: what the flow lets pass in the
/// time in which a loss would be repaired.
std::uint32_t blocks_on_way(const hop::Flow& flow, std::size_t block_bytes, std::uint32_t blocks) {
  const Duration span = flow.smoothed_rtt() + flow.reorder_window();
  const double bits = static_cast<double>(flow.allowed_bits_per_second()) * span.to_seconds();
  const auto wire_bits = static_cast<double>((block_bytes + hop::kWireOverheadBytes) * 8);
  return bits <= 0 ? blocks : std::min(blocks, static_cast<std::uint32_t>(bits / wire_bits) + 1);
}

}  // namespace

/// Rows for a round of so many blocks to the peer; 0: it needs none. What is on its way at the end
/// may be less than the flow lets pass, so where that is too much there are as many as there can
/// be.
std::size_t Transmitter::parity_rows(const hop::Peer& peer, std::uint32_t blocks) const {
  // A controller that slows down when blocks get lost must hear of it. `delay` has to where nothing
  // else bounds its window.
  const ControllerKind controller = state_.config.congestion.controller;
  if (!ignores_random_loss(controller)) return 0;
  if (controller == ControllerKind::kDelay && !peer.flow.knows_link_rate()) return 0;
  if (peer.flow.min_rtt() < state_.config.parity_from) return 0;
  if (peer.loss_there < hop::kMinParityLoss || blocks < hop::kMinParityBlocks) return 0;
  const std::size_t rows = hop::parity_rows_for(
      blocks_on_way(peer.flow, state_.config.block_bytes, blocks), peer.loss_there);
  return rows == 0 ? hop::kMaxParityRows : std::min(rows + kSpareRows, hop::kMaxParityRows);
}

/// The first block of a round goes over the edge. Results of one tree are the same for all
/// children, so these share the rows.
hop::Parity* Transmitter::begin_parity(hop::OutEdge& edge, std::size_t slot) {
  const Round& round = state_.rounds[slot];
  if (round.geometry.operation != Operation::kAllReduce) return nullptr;
  const std::uint32_t blocks = edge.senders[slot].range().size();
  std::size_t rows = parity_rows(state_.peers[edge.peer], blocks);
  if (edge.is_push()) return rows == 0 ? nullptr : state_.parities.take(rows, blocks);
  if (rows == 0 && edge.seats[slot].group == nullptr) return nullptr;
  aggregate::Tree& tree = state_.plan_of(round).trees()[edge.id.tree];
  for (const hop::OutEdge& other : tree.child_results()) {
    if (other.parity[slot] != nullptr) return hop::ParityTable::share(other.parity[slot]);
    rows = std::max(rows, parity_rows(state_.peers[other.peer], blocks));
  }
  return rows == 0 ? nullptr : state_.parities.take(rows, blocks);
}

/// A block leaves. Returns the rows that its packet names.
std::uint8_t Transmitter::add_to_parity(hop::OutEdge& edge, std::size_t slot, std::uint32_t block,
                                        const aggregate::Tree::Outbound& sent) {
  const std::uint16_t bit = hop::OutEdge::bit(slot);
  if ((edge.parity_begun & bit) == 0) {
    edge.parity_begun = static_cast<std::uint16_t>(edge.parity_begun | bit);
    edge.parity[slot] = begin_parity(edge, slot);
  }
  hop::Parity* parity = edge.parity[slot];
  if (parity == nullptr) return 0;
  // What is computed from rows has no header of its own, so it must be like all others.
  if (sent.partial || sent.wire != WireType::kElements) parity->spoil();
  parity->add(block - edge.senders[slot].range().begin, sent.bytes);
  return static_cast<std::uint8_t>(parity->rows());
}

/// On a long path that loses blocks the end of a round is followed by parity, or goes twice.
void Transmitter::guard_tail(hop::OutEdge& edge, std::size_t slot, Instant now) const {
  hop::BlockSender& sender = edge.senders[slot];
  const hop::Peer& peer = state_.peers[edge.peer];
  if (!sender.all_sent() || sender.has_originals()) return;
  const hop::Parity* parity = edge.parity[slot];
  const std::uint32_t on_way = sender.in_flight();
  if (parity != nullptr && parity->added() == sender.range().size() &&
      on_way >= hop::kMinParityBlocks) {
    const std::size_t rows = hop::parity_rows_for(on_way, peer.loss_there);
    // Rows that wait for acks come no sooner than a repair, and would only hold it back.
    const bool has_room = peer.flow.in_flight() + rows <= peer.flow.window();
    if (rows > 0 && has_room) return sender.queue_parity(std::min(rows, parity->rows()));
  }
  // What the receiver tells of a new path holds half a packet that was not lost.
  if (peer.flow.is_lossy() && peer.flow.min_rtt() >= hop::kLongPath && !sender.has_queued())
    sender.copy_tail(hop::clock_us(now), peer.flow.min_rtt() / kTailShare);
}

/// Writes row number `row` of what is on its way to the peer.
Outgoing Transmitter::write_parity(const Work& work, std::uint32_t row, std::span<std::byte> out,
                                   Instant now) {
  hop::OutEdge& edge = *work.edge;
  hop::BlockSender& sender = edge.senders[work.slot];
  hop::Peer& peer = state_.peers[edge.peer];
  const Round& round = state_.rounds[work.slot];
  Plan& plan = state_.plan_of(round);
  const aggregate::Tree& tree = plan.trees()[edge.id.tree];
  const hop::Parity& parity = *edge.parity[work.slot];
  const std::uint32_t first = sender.range().begin;
  wire::BlockHeader h = header_of(work, row);
  h.contributors = tree.bytes_to_send(plan.context(), round, edge.is_push(), first).contributors;
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
  // The first block of a range is as long as any.
  const std::span<const std::byte> payload = parity.row(row).first(round.geometry.bytes_in(first));
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
