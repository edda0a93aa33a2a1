// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/grants/grant_scheduler.h"
#include "dataplane/hop/iteration.h"
#include "dataplane/hop/peer_table.h"
#include "dataplane/wire/ack.h"
#include "dataplane/wire/block.h"

namespace gradplane::job {

/// What the peers of one job may send to this node. The node's scheduler decides. This tells it
/// what the peers want and what has come of it. Without a scheduler every call does nothing.
class Incoming {
 public:
  Incoming() : iteration_(1) {
    sources_.reserve(kMaxNodes);
    spare_.reserve(kMaxNodes);
  }

  /// Every peer that is in use becomes a source of the scheduler, which outlives this or is left.
  /// False when it has no room for all of them.
  [[nodiscard]] bool join(grants::GrantScheduler& grants, grants::JobIndex index,
                          const hop::PeerTable& peers);
  /// So many more peers are about to be in use. False, and nothing happens, when the scheduler has
  /// no room for them. update() follows.
  [[nodiscard]] bool reserve(std::size_t peers);
  /// Peers that are in use now become sources, as far as reserve() has made room. Those that no
  /// plan names any more are sources no longer.
  void update(const hop::PeerTable& peers);
  void leave();
  bool joined() const { return grants_ != nullptr; }
  grants::JobIndex index() const { return index_; }
  /// What the peers are to the scheduler, by peer; kNoSource of a peer that is not in use. Empty
  /// before join().
  std::span<const grants::SourceIndex> sources() const { return sources_; }
  static constexpr grants::SourceIndex kNoSource{UINT16_MAX};
  static_assert(kMaxGrantSources <= kNoSource.index());

  /// A packet that only passes through this node takes from its link, too.
  void on_relayed(std::size_t datagram_bytes, Instant now) {
    if (grants_ != nullptr) grants_->on_other(datagram_bytes + hop::kFrameOverheadBytes, now);
  }
  /// A packet with a block has come, whatever becomes of the block: it has used the link, and some
  /// of its sender's credit.
  void on_packet(const wire::BlockPacket& packet, hop::PeerIndex peer, bool marked, Instant now);
  /// A round with so many blocks begins; `bucket` as in Geometry.
  void on_round(std::size_t slot, std::uint16_t bucket, std::uint32_t blocks);
  /// So many blocks of the round have come, or never will: the progress of the job's iteration,
  /// which MLTCP calls bytes_ratio.
  void on_blocks(std::size_t slot, std::uint32_t blocks);
  /// The peer need not send what it was granted.
  void withdraw(hop::PeerIndex peer, Instant now);

  /// What the peer may send. The epoch is left to the caller.
  wire::Grant grant_of(hop::PeerIndex peer) const;
  /// Packets after which an ack goes. A peer that may have few blocks on their way waits for each
  /// ack, so its ack goes when half of them are here.
  std::uint32_t ack_every() const;

 private:
  void give_back_spare();
  bool is_source(hop::PeerIndex peer) const {
    return peer.index() < sources_.size() && sources_[peer.index()] != kNoSource;
  }

  grants::GrantScheduler* grants_ = nullptr;
  grants::JobIndex index_;                    // of this job there
  std::vector<grants::SourceIndex> sources_;  // by peer
  std::vector<grants::SourceIndex> spare_;    // that reserve() has taken
  hop::Iteration iteration_;                  // of all peers as one
  static constexpr hop::PeerIndex kAllPeers{0};
};

}  // namespace gradplane::job
