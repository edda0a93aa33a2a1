// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Parity of rounds: which blocks are recovered from it.
#include "dataplane/job/receiver.h"
#include "dataplane/job/statement.h"

namespace gradplane::job {

using hop::Drop;

/// Handles a row of parity. The blocks that the edge lacks in this round are recovered as soon as
/// no more of them are missing than rows have come.
void Receiver::handle_parity(const wire::BlockPacket& packet, hop::PeerIndex peer,
                             bool congestion_experienced, Instant now) {
  const wire::BlockHeader& h = packet.header;
  state_.peers[peer].heard_at = now;
  Plan* plan = state_.plans.find(h.epoch);
  if (plan == nullptr) return handle_retired(packet, peer);
  if (h.tree >= plan->trees().size()) return state_.counters.drop(Drop::kNotPeer);
  if (congestion_experienced) {
    ++state_.peers[peer].marks_received[hop::kDirectPath];
    ++state_.counters.congestion_marks;
  }
  state_.incoming.on_packet(packet, peer, congestion_experienced, now);
  ++state_.counters.parity_received;
  aggregate::Tree& tree = plan->trees()[h.tree];
  const hop::EdgeIndex index = tree.find_in(wire::block_type(packet.envelope->type), peer);
  if (index == hop::kNoEdge) return state_.counters.drop(Drop::kNotPeer);
  hop::InEdge& edge = tree.in(index);
  const Round& round = state_.slot_of(h.round);
  if (is_older(h.round, round.id)) {
    plan->acks().request(edge.id, h.round, now);
    return state_.counters.drop(Drop::kPastRound);
  }
  hop::BlockReceiver& receiver = edge.receivers[round.slot()];
  const bool has_begun =
      round.id == h.round && state_.has_open(*plan, round) && receiver.has_heard();
  if (!has_begun) return state_.counters.drop(Drop::kFutureRound);
  // The first block of a range is as long as any, and in a wire type no block is longer.
  const bool is_of_types = h.wire_type != WireType::kElements;
  const std::size_t longest_bytes = round.geometry.bytes_in(receiver.range().begin);
  if (!says_the_same(h, round.geometry) || receiver.range().size() == 0 ||
      packet.payload.size() > longest_bytes ||
      (packet.payload.size() < longest_bytes && !is_of_types)) {
    return state_.counters.drop(Drop::kBadGeometry);
  }
  if (!is_of_types && h.contributors != edge.ranks) {
    return state_.counters.drop(Drop::kBadContributors);
  }
  const bool is_needless = receiver.complete() || receiver.closed();
  const bool is_last = (packet.envelope->flags & wire::kFlagLast) != 0;
  if (edge.is_push()) tree.note_row(round.slot(), index, is_last, now);
  bool at_once = receiver.note_packet({.timestamp_us = packet.envelope->timestamp_us,
                                       .last = is_last,
                                       .path = hop::kDirectPath,
                                       .ack_every = ack_every_},
                                      now);
  if (is_needless) at_once = is_last;  // an earlier ack has said everything
  plan->acks().request(edge.id, h.round, receiver, at_once, now);
  if (is_needless) return state_.counters.drop(Drop::kDuplicate);
  hop::Parity* parity = edge.parity[round.slot()];
  const bool is_followed = parity != nullptr && parity->rows() == packet.envelope->parity_rows &&
                           parity->added() == receiver.arrived();
  if (!is_followed) return state_.counters.drop(Drop::kUnusedParity);
  const auto types = is_of_types ? static_cast<std::uint8_t>(h.contributors) : std::uint8_t{0};
  if (!parity->take_row(h.block, packet.payload, types))
    return state_.counters.drop(Drop::kDuplicate);
  recover(*plan, edge, packet, peer, now);
}

/// Adds a block that has come for the first time to the rows of its round, if rows may follow.
void Receiver::follow_parity(Plan& plan, hop::InEdge& edge, const wire::BlockPacket& packet,
                             hop::PeerIndex peer, Instant now) {
  if (is_recovering_) return;
  const Round& round = state_.slot_of(packet.header.round);
  const std::size_t slot = round.slot();
  hop::Parity*& parity = edge.parity[slot];
  const hop::BlockReceiver& receiver = edge.receivers[slot];
  const std::size_t rows = packet.envelope->parity_rows;
  if (receiver.arrived() == 1 && rows > 0) {
    hop::ParityTable::release(parity);
    parity = state_.parities.take(rows, receiver.range().size());
  }
  if (parity == nullptr) return;
  // A sender that has sent a partial block sends no rows.
  if (rows != parity->rows() || receiver.complete()) return hop::ParityTable::release(parity);
  parity->add(packet.header.block - receiver.range().begin, packet.payload,
              packet.header.wire_type);
  recover(plan, edge, packet, peer, now);
}

/// Recovers the missing blocks if enough rows are here, and takes them as if they had come in
/// packets like `packet`, which is of the same edge and round.
void Receiver::recover(Plan& plan, hop::InEdge& edge, const wire::BlockPacket& packet,
                       hop::PeerIndex peer, Instant now) {
  const Round& round = state_.slot_of(packet.header.round);
  hop::Parity*& parity = edge.parity[round.slot()];
  const hop::BlockReceiver& receiver = edge.receivers[round.slot()];
  const std::uint32_t count = receiver.missing();
  if (count == 0 || count > parity->rows_taken()) return;
  std::array<std::uint32_t, hop::kMaxParityRows> missing{};
  const BlockRange range = receiver.range();
  std::size_t found = 0;
  for (std::uint32_t b = range.begin; b < range.end && found < count; ++b) {
    if (!receiver.has(b)) missing[found++] = b - range.begin;
  }
  if (!state_.parities.recover(*parity, std::span(missing).first(found))) return;
  wire::Envelope envelope = *packet.envelope;
  envelope.type = wire::block_type(envelope.type);
  wire::BlockPacket block = packet;
  block.envelope = &envelope;
  block.header.contributors = edge.ranks;
  const Geometry geometry = round.geometry;
  const aggregate::Bucket* const bucket = round.bucket;
  is_recovering_ = true;
  for (std::size_t i = 0; i < found; ++i) {
    const std::uint32_t number = range.begin + missing[i];
    const std::uint8_t type = state_.parities.recovered_type(i);
    block.header.block = static_cast<std::uint16_t>(number);
    block.header.wire_type = is_wire_type(type) ? WireType{type} : WireType::kElements;
    block.payload = state_.parities.recovered(i).first(payload_bytes(block.header, geometry));
    if (!is_wire_type(type) || !wire::has_sound_scale(block.header, block.payload) ||
        !may_go_as(block.header, bucket)) {
      state_.counters.drop(Drop::kBadGeometry);
      continue;
    }
    ++state_.counters.blocks_recovered;
    take_block(plan, block, peer, now);
  }
  is_recovering_ = false;
  hop::ParityTable::release(edge.parity[round.slot()]);
}

}  // namespace gradplane::job
