// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/hop/peer_table.h"

#include <bit>
#include <utility>

#include "dataplane/base/assert.h"

namespace gradplane::hop {

Peer::Peer(const PeerConfig& config, const wire::Key& packet_key,
           const CongestionSettings& congestion, std::size_t block_bytes)
    : node(config.node),
      key(packet_key),
      flow({.rate_bits_per_second = config.rate_bits_per_second,
            .block_wire_bytes = block_bytes + kWireOverheadBytes,
            .congestion = congestion}),
      credit(config.unscheduled_bits_per_second, config.senders()) {
  edges.reserve(kMaxLivePlans * kMaxTrees);  // a tree has one edge to a peer at most
}

std::uint32_t Peer::blocks_queued() const {
  std::uint32_t blocks = 0;
  for (const OutEdge* edge : edges) {
    for (unsigned bits = edge->queued; bits != 0; bits &= bits - 1) {
      blocks += edge->senders[static_cast<std::size_t>(std::countr_zero(bits))].queued();
    }
  }
  return blocks;
}

PeerTable::PeerTable() : peer_of_node_(kMaxNodes, kNoPeer) {
  peers_.reserve(kMaxNodes);
}

PeerIndex PeerTable::add(Peer& peer) {
  GP_ASSERT(peer.node < kMaxNodes);
  if (const PeerIndex index = find(peer.node); index != kNoPeer) {
    Peer& known = (*this)[index];
    GP_ASSERT(!known.is_in_use());
    std::swap(known, peer);
    // The peer may have forgotten the job, but the path to it is what it was.
    std::swap(known.flow, peer.flow);
    known.credit.on_unscheduled(peer.credit.unscheduled());
    return index;
  }
  const auto index = PeerIndex::from_index(peers_.size());
  peer_of_node_[peer.node] = index;
  peers_.push_back(std::move(peer));
  return index;
}

}  // namespace gradplane::hop
