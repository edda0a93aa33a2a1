// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/hop/peer_table.h"

#include <bit>

namespace gradplane::hop {

std::uint32_t Peer::blocks_queued() const {
  std::uint32_t blocks = 0;
  for (const OutEdge* edge : edges) {
    for (unsigned bits = edge->queued; bits != 0; bits &= bits - 1) {
      blocks += edge->senders[static_cast<std::size_t>(std::countr_zero(bits))].queued();
    }
  }
  return blocks;
}

PeerTable::PeerTable(const std::vector<PeerConfig>& peers, const CongestionSettings& congestion,
                     std::size_t block_bytes) {
  peers_.reserve(peers.size());
  for (std::size_t p = 0; p < peers.size(); ++p) {
    const PeerConfig& peer = peers[p];
    const std::uint64_t share = peer.unscheduled_bits_per_second;
    peers_.push_back(
        {.node = peer.node,
         .flow = Flow({.rate_bits_per_second = peer.rate_bits_per_second,
                       .block_wire_bytes = block_bytes + kWireOverheadBytes,
                       .congestion = congestion}),
         .credit = CreditLine(share, share > 0 ? peer.rate_bits_per_second / share : 1),
         .edges = {}});
    if (peer_of_node_.size() <= peer.node)
      peer_of_node_.resize(peer.node + std::size_t{1}, kNoPeer);
    peer_of_node_[peer.node] = static_cast<std::uint16_t>(p);
  }
}

}  // namespace gradplane::hop
