// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/awareness/loss_meter.h"
#include "dataplane/awareness/loss_share.h"
#include "dataplane/hop/credit_line.h"
#include "dataplane/hop/edge.h"
#include "dataplane/hop/flow.h"
#include "dataplane/hop/path.h"
#include "dataplane/hop/replay_window.h"
#include "dataplane/model/congestion_settings.h"
#include "dataplane/wire/block.h"
#include "dataplane/wire/seal.h"

namespace gradplane::hop {

/// What a datagram costs on the link besides its own bytes: Ethernet with preamble and gap, IPv4
/// and UDP.
inline constexpr std::size_t kFrameOverheadBytes = 66;
/// What a block costs on the link besides its bytes, where it has no extension.
inline constexpr std::size_t kWireOverheadBytes = kFrameOverheadBytes + wire::kBlockOverheadBytes;

/// What a node may send to a peer.
struct PeerRates {
  /// A share of the peer's link, or the whole of it where the peer grants. 0: not paced.
  std::uint64_t rate_bits_per_second = 0;
  /// With grants, the part of that which needs no grant: a share. 0: not paced.
  std::uint64_t unscheduled_bits_per_second = 0;

  /// The number of senders that share the peer's link, as far as the two rates tell.
  std::size_t senders() const {
    return unscheduled_bits_per_second > 0 ? rate_bits_per_second / unscheduled_bits_per_second : 1;
  }
};

/// Another node, as one job sees it.
struct PeerConfig {
  std::uint16_t node = 0;
  /// Of rounds in which all nodes of the plan that ever send to the peer do: even shares.
  PeerRates rates = {};
  /// Of exchanges, in which only selected nodes send to it.
  PeerRates rates_of_updates = {};
  bool has_routes = false;  // auxiliary ones, from this node to the peer
};

/// What one job knows of the path to one peer. It outlives plans: a further plan finds the round
/// trips, the window and the credit as the one before has left them. But a peer that no live plan
/// names may have forgotten this job. When a plan names it again, both ends begin anew, with the
/// key of that plan, so that no packet of the earlier time is valid. Only the flow stays: it is
/// about the path, and a first window at every change of plans would slow the rounds after it.
struct Peer {
  std::uint16_t node = 0;
  /// Of packets in both directions: that of the plan that brought it. Null where nothing is
  /// authenticated.
  std::shared_ptr<const wire::Gmac> key;
  Flow flow;
  CreditLine credit;
  /// Packets from the peer with congestion experienced, mod 2^32, by path; and of our packets, as
  /// the peer's acks say.
  std::array<std::uint32_t, kMaxPaths> marks_received{};
  std::array<std::uint32_t, kMaxPaths> marks_heard{};
  std::vector<OutEdge*> edges;             // that lead to it, of all live plans
  std::uint64_t packets_sent = 0;          // of every type: the number of the last one
  awareness::LossMeter packets_lost = {};  // of the peer's packets
  awareness::LossShare loss_here = {};     // of the same, for the peer to know
  double loss_there = 0;                   // of our packets, as the peer's last ack says
  ReplayWindow packets_received = {};
  /// What it knows of auxiliary routes to the peer, by route; null where no plan has any. The
  /// routes themselves are those of each plan, at its edges.
  std::unique_ptr<std::array<Detour, kMaxRoutes>> detours;
  Instant heard_at;  // when its last good packet came
  /// Its last ack said that the rate of the link to it is not known there.
  bool wants_sounding = false;
  /// The peer's last sounding of which a packet has come, when this packet was sent, and whether it
  /// is still to be answered.
  std::uint32_t heard_sounding = 0;
  std::uint32_t heard_sounding_us = 0;
  bool owes_answer = false;
  /// A push of the peer that this node cannot take yet. It is to be told that the push has come.
  struct Refused {
    std::uint32_t epoch = 0;
    std::uint8_t tree = 0;
    std::uint32_t round = 0;
    bool is_owed = false;
  };
  Refused refused;
  /// Live plans in which it is before or after us on some route, or one of us sounds the other.
  std::uint32_t plans_beside_trees = 0;

  /// Allocates everything that the peer will need.
  Peer(const PeerConfig& config, std::shared_ptr<const wire::Gmac> key,
       const CongestionSettings& congestion, std::size_t block_bytes);

  /// Some live plan names it. A plan has an edge to each of its peers, or they are neighbours on an
  /// auxiliary route, or one sounds the other.
  bool is_in_use() const { return !edges.empty() || plans_beside_trees > 0; }

  Flow& flow_of(std::size_t path) {
    return flow_path(path) == kDirectPath ? flow : (*detours)[path - 1].flow;
  }
  bool has_path(std::size_t path) const {
    return flow_path(path) == kDirectPath || detours != nullptr;
  }
  /// Over all paths.
  std::uint32_t in_flight() const;
  /// An ack about `path` tells that blocks have arrived, over whatever paths, and that `marked`
  /// packets on `path` were marked.
  void on_acked(Instant now, const PathBlocks& acked, std::size_t path = kDirectPath,
                std::uint32_t marked = 0);
  void on_forgotten(const PathBlocks& blocks);
  /// Nothing waits to be sent to it although there is room.
  void note_app_limited();

  /// How many of our packets were marked that no ack has told of. An ack that is older than the
  /// last one tells of none.
  std::uint32_t newly_marked(std::size_t path, std::uint32_t total) {
    const auto more = static_cast<std::int32_t>(total - marks_heard[path]);
    if (more <= 0) return 0;
    marks_heard[path] = total;
    return static_cast<std::uint32_t>(more);
  }
};

/// The peers of one job, of all its plans so far. An index into it is a peer's name inside the job.
class PeerTable {
 public:
  /// Has room for every node of a cluster, so that a plan can add peers in the poll loop.
  PeerTable();

  /// Takes a peer that it does not have or that is not in use, and returns its index. What was
  /// known of that node before is in `peer` afterwards.
  PeerIndex add(Peer& peer);
  /// The same for a peer that is in use already: only what it needs for routes is taken, where it
  /// has none.
  PeerIndex add_routes(Peer& peer);

  std::size_t size() const { return peers_.size(); }
  Peer& operator[](PeerIndex peer) { return peers_[peer.index()]; }
  const Peer& operator[](PeerIndex peer) const { return peers_[peer.index()]; }
  std::span<const Peer> all() const { return peers_; }
  std::span<Peer> all() { return peers_; }
  /// The peer that is this node; kNoPeer when it is none.
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
};

}  // namespace gradplane::hop
