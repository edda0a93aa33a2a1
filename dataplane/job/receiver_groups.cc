// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Packets to groups: results of a parent, and updates.
#include "dataplane/job/receiver.h"

namespace gradplane::job {

using hop::Drop;

/// Handles a result that its sender sends to all its children, or an update that it sends to all
/// receivers. The packet names a tree in which its sender is this node's parent. Its number and tag
/// are those of the parent's groups in that tree.
std::optional<awareness::Told> Receiver::handle_for_group(hop::PeerIndex index,
                                                          const wire::Envelope& envelope,
                                                          std::span<const std::byte> datagram,
                                                          bool congestion_experienced,
                                                          Instant now) {
  const auto drop = [this](Drop why) {
    state_.counters.drop(why);
    return std::nullopt;
  };
  const auto hint = wire::read_group_hint(datagram);
  if (!hint) return drop(Drop::kMalformed);
  Plan* plan = state_.plans.find(hint->epoch);
  if (plan == nullptr) return drop(Drop::kWrongEpoch);
  if (hint->tree >= plan->trees().size()) return drop(Drop::kNotPeer);
  aggregate::Tree& tree = plan->trees()[hint->tree];
  const hop::EdgeIndex from = tree.find_in(wire::PacketType::kResult, index);
  if (from == hop::kNoEdge) return drop(Drop::kNotPeer);
  hop::ReplayWindow& numbers = tree.in(from).group_packets;
  const std::uint64_t number = numbers.restore(envelope.number);
  const auto opened = state_.config.authenticate
                          ? wire::open(datagram, plan->key(),
                                       {.writer = envelope.sender,
                                        .receiver = wire::Receiver::group(hint->tree),
                                        .number = number})
                          : wire::open_unsealed(datagram);
  if (!opened) return drop(Drop::kBadTag);
  if (wire::read_block(envelope, *opened, block_) != wire::ParseError::kNone) {
    return drop(Drop::kMalformed);
  }
  if (!numbers.accept(number)) return drop(Drop::kReplayed);
  if (envelope.type == wire::PacketType::kPush) {
    // Each receiver gathers an update in a tree of its own, in which each block has the same
    // number.
    const wire::BlockHeader& h = block_.header;
    const bool is_ours = h.operation == Operation::kExchange && plan->own_tree() &&
                         plan->receives_from(envelope.sender, h.source);
    if (!is_ours) return drop(Drop::kNotPeer);
    block_.header.tree = *plan->own_tree();
  }
  path_ = hop::kGroupPath;
  handle_block(block_, index, congestion_experienced, now);
  return awareness::Told{};
}

/// Whether the parent knows that this node has begun the round. Otherwise it holds the blocks that
/// go to this node alone, and would never ask again for an ack that was lost.
bool Receiver::is_heard_by_parent(const aggregate::Tree& tree, const Round& round,
                                  aggregate::HostSet covered) const {
  const hop::BlockSender& push = tree.push().senders[round.slot()];
  if (!all_contribute(round.geometry.operation)) return push.is_acked(push.range().begin);
  return tree.covers_own_push(covered) || push.acked() > 0;
}

}  // namespace gradplane::job
