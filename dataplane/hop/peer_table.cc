// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/hop/peer_table.h"

#include <utility>

#include "dataplane/base/assert.h"

namespace gradplane::hop {

Peer::Peer(const PeerConfig& config, std::shared_ptr<const wire::Gmac> packet_key,
           const CongestionSettings& congestion, std::size_t block_bytes)
    : node(config.node),
      key(std::move(packet_key)),
      flow({.rate_bits_per_second = config.rates.rate_bits_per_second,
            .block_wire_bytes = block_bytes + kWireOverheadBytes,
            .congestion = congestion}),
      credit(config.rates.unscheduled_bits_per_second, config.rates.senders()) {
  if (config.has_routes) {
    // The rate of a route is not known, so only its window holds blocks back.
    const Flow::Limits limits{.block_wire_bytes = block_bytes + kWireOverheadBytes,
                              .congestion = congestion};
    detours = std::make_unique<std::array<Detour, kMaxRoutes>>(
        std::array<Detour, kMaxRoutes>{Detour{.flow = Flow(limits)}, Detour{.flow = Flow(limits)}});
  }
  edges.reserve(kMaxLivePlans * kMaxTrees);  // a tree has at most one edge to a peer
}

std::uint32_t Peer::in_flight() const {
  std::uint32_t blocks = flow.in_flight();
  for (std::size_t r = 0; detours != nullptr && r < kMaxRoutes; ++r) {
    blocks += (*detours)[r].flow.in_flight();
  }
  return blocks;
}

void Peer::on_acked(Instant now, const PathBlocks& acked, std::size_t path, std::uint32_t marked) {
  const std::uint32_t marked_direct = flow_path(path) == kDirectPath ? marked : 0;
  const std::uint32_t direct = acked.direct();
  if (direct > 0 || marked_direct > 0) flow.on_acked(now, direct, marked_direct);
  for (std::size_t r = 0; detours != nullptr && r < kMaxRoutes; ++r) {
    const std::uint32_t marked_here = path == r + 1 ? marked : 0;
    if (acked.over_route[r] == 0 && marked_here == 0) continue;
    (*detours)[r].on_heard(now);
    (*detours)[r].flow.on_acked(now, acked.over_route[r], marked_here);
  }
}

void Peer::on_forgotten(const PathBlocks& blocks) {
  flow.on_forgotten(blocks.direct());
  for (std::size_t r = 0; detours != nullptr && r < kMaxRoutes; ++r) {
    (*detours)[r].flow.on_forgotten(blocks.over_route[r]);
  }
}

void Peer::note_app_limited() {
  flow.note_app_limited();
  for (std::size_t r = 0; detours != nullptr && r < kMaxRoutes; ++r) {
    (*detours)[r].flow.note_app_limited();
  }
}

PeerTable::PeerTable() : peer_of_node_(kMaxNodes, kNoPeer) {
  peers_.reserve(kMaxNodes);
  to_poll_.reset(kMaxNodes);
}

PeerIndex PeerTable::add(Peer& peer) {
  GP_ASSERT(peer.node < kMaxNodes);
  if (const PeerIndex index = find(peer.node); index != kNoPeer) {
    Peer& known = (*this)[index];
    GP_ASSERT(!known.is_in_use());
    std::swap(known, peer);
    // The peer may have forgotten the job, but the path to it is the same.
    std::swap(known.flow, peer.flow);
    if (peer.detours != nullptr) std::swap(known.detours, peer.detours);
    known.credit.on_unscheduled(peer.credit.unscheduled());
    return index;
  }
  const auto index = PeerIndex::from_index(peers_.size());
  peer_of_node_[peer.node] = index;
  peers_.push_back(std::move(peer));
  return index;
}

PeerIndex PeerTable::add_routes(Peer& peer) {
  const PeerIndex index = find(peer.node);
  GP_ASSERT(index != kNoPeer);
  if ((*this)[index].detours == nullptr) std::swap((*this)[index].detours, peer.detours);
  return index;
}

}  // namespace gradplane::hop
