// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/awareness/loss_meter.h"
#include "dataplane/awareness/loss_share.h"
#include "dataplane/base/bitmap.h"
#include "dataplane/hop/credit_line.h"
#include "dataplane/hop/edge.h"
#include "dataplane/hop/flow.h"
#include "dataplane/hop/path.h"
#include "dataplane/hop/replay_window.h"
#include "dataplane/model/congestion_settings.h"
#include "dataplane/wire/block.h"
#include "dataplane/wire/seal.h"

namespace gradplane::hop {

/// The bytes of a datagram on the link besides its own: Ethernet with preamble and gap, IPv4 and
/// UDP.
inline constexpr std::size_t kFrameOverheadBytes = 66;
/// The bytes of a packet with one block on the link besides the payload, without extensions.
inline constexpr std::size_t kWireOverheadBytes = kFrameOverheadBytes + wire::kBlockOverheadBytes;

/// The rates at which a node may send to a peer.
struct PeerRates {
  /// A share of the peer's link, or the whole link if the peer grants. 0: not paced.
  std::uint64_t rate_bits_per_second = 0;
  /// With grants, the part of that rate that needs no grant: a share. 0: not paced.
  std::uint64_t unscheduled_bits_per_second = 0;

  /// The number of senders that share the peer's link, as far as the two rates tell.
  std::size_t senders() const {
    return unscheduled_bits_per_second > 0 ? rate_bits_per_second / unscheduled_bits_per_second : 1;
  }
};

/// Another node, as one job sees it.
struct PeerConfig {
  std::uint16_t node = 0;
  /// Rates in rounds in which all nodes of the plan send that ever send to the peer: even shares.
  PeerRates rates = {};
  /// Rates in exchanges, in which only selected nodes send to the peer.
  PeerRates rates_of_updates = {};
  bool has_routes = false;  // auxiliary routes from this node to the peer
};

/// What one job knows of the path to one peer. It outlives plans: a further plan finds the round
/// trips, the window and the credit as the older one has left them.
///
/// But a peer that no live plan names may have forgotten this job. When a plan names it again, both
/// ends begin anew with the key of that plan, so that no earlier packet is valid. Only the flow
/// stays. It describes the path, and starting from a first window at every change of plans would
/// slow the rounds after it.
struct Peer {
  std::uint16_t node = 0;
  /// The key of packets in both directions, from the plan that brought the peer. Null if packets
  /// are not authenticated.
  std::shared_ptr<const wire::Gmac> key;
  Flow flow;
  CreditLine credit;
  /// marks_received counts blocks in packets from the peer with congestion experienced, by path.
  /// marks_heard is the same count for our packets, from the peer's acks. Both wrap at 2^32.
  std::array<std::uint32_t, kMaxPaths> marks_received{};
  std::array<std::uint32_t, kMaxPaths> marks_heard{};
  std::vector<OutEdge*> edges;             // edges to the peer, of all live plans
  std::uint64_t packets_sent = 0;          // packets of every type; also the number of the last one
  awareness::LossMeter packets_lost = {};  // losses among the peer's packets
  awareness::LossShare loss_here = {};     // loss share of the same packets, reported to the peer
  double loss_there = 0;                   // loss share of our packets, from the peer's last ack
  ReplayWindow packets_received = {};
  /// The state of auxiliary routes to the peer, by route; null if no plan has any. The routes
  /// themselves belong to each plan, at its edges.
  std::unique_ptr<std::array<Detour, kMaxRoutes>> detours;
  Instant heard_at;  // when its last valid packet came
  /// When a packet came before packets that the peer had sent earlier, and may be lost.
  Instant gap_at = Instant::from_ns(INT64_MIN / 4);
  /// Its last ack said that it does not know the rate of the link from this node.
  bool wants_sounding = false;
  /// The number of the peer's last sounding of which a packet has come, when that packet was sent,
  /// and whether it is still to be answered.
  std::uint32_t heard_sounding = 0;
  std::uint32_t heard_sounding_us = 0;
  bool owes_answer = false;
  /// A push of the peer that this node cannot take yet. The peer must hear that it has come.
  struct Refused {
    std::uint32_t epoch = 0;
    std::uint8_t tree = 0;
    std::uint32_t round = 0;
    bool is_owed = false;
  };
  Refused refused;
  /// The number of live plans in which the peer is this node's neighbour on a route, or one of the
  /// two sounds the other.
  std::uint32_t plans_beside_trees = 0;

  /// Allocates everything that the peer will need.
  Peer(const PeerConfig& config, std::shared_ptr<const wire::Gmac> key,
       const CongestionSettings& congestion, std::size_t block_bytes);

  /// Whether some live plan names the peer: the plan has an edge to it, or the two nodes are
  /// neighbours on an auxiliary route, or one sounds the other.
  bool is_in_use() const { return !edges.empty() || plans_beside_trees > 0; }

  /// Whether a block waits to be sent to the peer, or would if its copies were not withheld.
  bool has_queued() const {
    return std::any_of(edges.begin(), edges.end(),
                       [](const OutEdge* edge) { return edge->queued != 0; });
  }

  Flow& flow_of(std::size_t path) {
    return flow_path(path) == kDirectPath ? flow : (*detours)[path - 1].flow;
  }
  bool has_path(std::size_t path) const {
    return flow_path(path) == kDirectPath || detours != nullptr;
  }
  /// Blocks in flight, over all paths.
  std::uint32_t in_flight() const;
  /// An ack about `path` says that blocks have arrived, on whatever paths, and that `marked` blocks
  /// on `path` were in marked packets.
  void on_acked(Instant now, const PathBlocks& acked, std::size_t path = kDirectPath,
                std::uint32_t marked = 0);
  void on_forgotten(const PathBlocks& blocks);
  /// Nothing waits to be sent to the peer although there is room.
  void note_app_limited();

  /// How many blocks in marked packets of ours an ack reports for the first time. An ack older than
  /// the last one reports none.
  std::uint32_t newly_marked(std::size_t path, std::uint32_t total) {
    const auto more = static_cast<std::int32_t>(total - marks_heard[path]);
    if (more <= 0) return 0;
    marks_heard[path] = total;
    return static_cast<std::uint32_t>(more);
  }
};

/// The peers of one job, of all its plans so far. A peer is named by its index in the table.
class PeerTable {
 public:
  /// Has room for every node of a cluster, so that a plan can add peers in the poll loop.
  PeerTable();

  /// Adds a peer that the table does not have or that is not in use, and returns its index.
  /// Afterwards `peer` holds what the table knew of that node before.
  PeerIndex add(Peer& peer);
  /// For a peer that is in use already: takes from `peer` only the state of routes, if the table
  /// has none.
  PeerIndex add_routes(Peer& peer);

  std::size_t size() const { return peers_.size(); }
  Peer& operator[](PeerIndex peer) { return peers_[peer.index()]; }
  const Peer& operator[](PeerIndex peer) const { return peers_[peer.index()]; }
  std::span<const Peer> all() const { return peers_; }
  std::span<Peer> all() { return peers_; }
  /// The peers to which something may have to be sent, by index. Whatever queues blocks, or changes
  /// what is in flight, adds the peer. The transmitter removes it when it has found that nothing
  /// waits, so idle peers cost it nothing.
  Bitmap& to_poll() { return to_poll_; }
  const Bitmap& to_poll() const { return to_poll_; }
  /// The peer with this node id; kNoPeer if there is none.
  PeerIndex find(std::uint16_t node) const {
    return node < peer_of_node_.size() ? peer_of_node_[node] : kNoPeer;
  }
  /// Whether some live plan names this node as a peer.
  bool is_in_use(std::uint16_t node) const {
    const PeerIndex peer = find(node);
    return peer != kNoPeer && (*this)[peer].is_in_use();
  }

 private:
  std::vector<Peer> peers_;
  std::vector<PeerIndex> peer_of_node_;
  Bitmap to_poll_{kMaxNodes};
};

}  // namespace gradplane::hop
