// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Packets with blocks for one node.
#include <algorithm>

#include "dataplane/hop/clock.h"
#include "dataplane/job/transmitter.h"

namespace gradplane::job {

using aggregate::Tree;

wire::BlockHeader Transmitter::header_of(const Work& work, std::uint32_t block) const {
  const Round& round = state_.rounds[work.slot];
  return {.epoch = static_cast<std::uint16_t>(work.edge->id.epoch),
          .bucket = round.geometry.bucket,
          .round = round.id,
          .tree = work.edge->id.tree,
          .block = static_cast<std::uint16_t>(block),
          .round_elements = round.geometry.elements,
          .operation = round.geometry.operation,
          .source = round.geometry.source,
          .element_type = round.geometry.type,
          .reduction = round.geometry.reduction};
}

Tree::Outbound Transmitter::bytes_of(const Work& work, std::uint32_t block) const {
  const Round& round = state_.rounds[work.slot];
  Plan& plan = state_.plan_of(round);
  const Tree& tree = plan.trees()[work.edge->id.tree];
  return tree.bytes_to_send(plan.context(), round, work.edge->is_push(), block);
}

/// The block after `last`, if the packet has room for it and its header would be the same. Not
/// towards receivers that grant, because they count a packet as one block. Not in a sounding,
/// because its packets must have one length.
std::optional<Tree::Outbound> Transmitter::one_more(const Work& work, std::uint32_t last,
                                                    const Load& load) const {
  const Tree::Outbound& first = load.blocks[0];
  const hop::Flow& flow = state_.peers[work.edge->peer].flow;
  if (first.wire == WireType::kElements || first.partial || load.count == Load::kMaxBlocks ||
      state_.config.grants || flow.sounding().is_on() || flow.window_is_full()) {
    return std::nullopt;
  }
  const hop::BlockSender& sender = work.edge->senders[work.slot];
  const std::optional<std::uint32_t> next = sender.peek();
  if (next != last + 1 || !sender.is_new(*next)) return std::nullopt;
  if (sender.is_critical(*next) != sender.is_critical(last)) return std::nullopt;
  const Geometry& geometry = state_.rounds[work.slot].geometry;
  const std::size_t bytes = wire_bytes(first.wire, geometry.type, geometry.elements_in(*next));
  if (load.bytes + bytes > state_.config.block_bytes) return std::nullopt;
  const Tree::Outbound block = bytes_of(work, *next);
  // Blocks that lack nobody have the same number of contributions.
  const bool says_the_same = block.wire == first.wire && !block.partial;
  return says_the_same ? std::optional(block) : std::nullopt;
}

/// Takes the blocks of one packet: one block, or as many consecutive ones of a narrow wire type as
/// fit.
const Transmitter::Load& Transmitter::take_load(const Work& work,
                                                const hop::BlockSender::Pick& first,
                                                std::size_t path, Instant now) {
  hop::OutEdge& edge = *work.edge;
  const Round& round = state_.rounds[work.slot];
  hop::BlockSender& sender = edge.senders[work.slot];
  hop::Peer& peer = state_.peers[edge.peer];
  const bool is_alone = path != hop::kDirectPath || first.retransmission;
  Load& load = load_;
  load.count = load.bytes = 0;
  hop::BlockSender::Pick pick = first;
  std::optional<Tree::Outbound> block = bytes_of(work, pick.block);
  while (block) {
    load.blocks[load.count++] = *block;
    load.bytes += block->size();
    load.parity_rows = add_to_parity(edge, work.slot, pick.block, *block);
    guard_tail(edge, work.slot, now);
    if (load.count == 1) {
      const std::size_t packet_bytes = block->size() + hop::kWireOverheadBytes;
      peer.credit.on_sent(now, packet_bytes);
      note_sent(peer, pick, path, packet_bytes, now);
    } else {
      peer.credit.on_sent(now, block->size());
      peer.flow.on_sent(now, block->size(), false);
    }
    ++state_.counters.blocks_sent;
    if (pick.retransmission) ++state_.counters.blocks_retransmitted;
    count_payload(round, pick.block, *block);
    block = is_alone ? std::nullopt : one_more(work, pick.block, load);
    if (block) pick = sender.take(hop::clock_us(now));
  }
  edge.refresh(work.slot);
  edge.active_us[work.slot] = hop::clock_us(now);
  return load;
}

Outgoing Transmitter::write_block(const Work& work, std::size_t path, std::span<std::byte> out,
                                  Instant now) {
  hop::OutEdge& edge = *work.edge;
  const Round& round = state_.rounds[work.slot];
  hop::BlockSender& sender = edge.senders[work.slot];
  hop::Peer& peer = state_.peers[edge.peer];
  const bool is_long = peer.flow.min_rtt() >= hop::kLongPath;
  const hop::BlockSender::Pick pick = sender.take(hop::clock_us(now), is_long, path);
  if (pick.parity) return write_parity(work, pick.block, out, now);
  const Load& load = take_load(work, pick, path, now);
  const Tree::Outbound& block = load.blocks[0];
  std::uint8_t flags = 0;
  if (sender.is_critical(pick.block)) flags |= wire::kFlagCritical;
  if (pick.retransmission) flags |= wire::kFlagRetransmission;
  if (sender.all_sent()) flags |= wire::kFlagLast;
  wire::BlockHeader h = header_of(work, pick.block);
  const Tree& tree = state_.plan_of(round).trees()[edge.id.tree];
  h.contributors = block.contributors;
  h.wire_type = block.wire;
  if (block.partial) flags |= wire::kFlagPartial;
  if (edge.is_push() && tree.is_bounded(round)) flags |= wire::kFlagBounded;
  if (edge.is_push()) h.patience = wire::patience_code(tree.patience(round, now));
  wire::Envelope envelope = envelope_of(edge.type, flags, now);
  envelope.parity_rows = load.parity_rows;
  const auto waiting = std::min<std::uint32_t>(state_.blocks_waiting(peer), UINT16_MAX);
  const wire::HopFeedback feedback{.sent_blocks = peer.credit.sent(),
                                   .waiting_blocks = static_cast<std::uint16_t>(waiting),
                                   .round_trip = wire::round_trip_code(peer.flow.latest_rtt())};
  wire::ExtensionFields extension{.coverage = block.hosts};
  if (path != hop::kDirectPath) extension.route = edge.routes[path - 1].span();
  const std::size_t payload_at = wire::write_block(out, envelope, h, &feedback, extension);
  const bool lends =
      load.count == 1 && !block.is_narrowed_late && block.size() >= state_.lends_from_bytes;
  std::size_t end = payload_at;
  for (const Tree::Outbound& part : load.parts()) {
    if (lends) break;
    part.write(out.data() + end);
    end += part.size();
  }
  const auto packet = out.first(end + wire::kTagBytes);
  const auto lent = lends ? block.bytes : std::span<const std::byte>{};
  if (path == hop::kDirectPath) return finish(peer, packet, lent);
  return finish(state_.peers[state_.peers.find(edge.routes[path - 1].first_relay())], packet, lent);
}

}  // namespace gradplane::job
