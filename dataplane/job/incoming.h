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

/// What the peers of one job may send to this node. The node's scheduler decides that; this class
/// tells it what the peers want, and what has come. Without a scheduler every call does nothing.
class Incoming {
 public:
  Incoming() : iteration_(1) {
    sources_.reserve(kMaxNodes);
    spare_.reserve(kMaxNodes);
  }

  /// Makes every peer that is in use a source of the scheduler, which must outlive this unless
  /// leave() is called. False if the scheduler has no room for all of them.
  [[nodiscard]] bool join(grants::GrantScheduler& grants, grants::JobIndex index,
                          const hop::PeerTable& peers);
  /// Makes room for this many further peers; update() must follow. False, and nothing happens, if
  /// the scheduler has no room for them.
  [[nodiscard]] bool reserve(std::size_t peers);
  /// Makes peers that are in use now sources, as far as reserve() has made room. Peers that no plan
  /// names any more stop being sources.
  void update(const hop::PeerTable& peers);
  void leave();
  bool joined() const { return grants_ != nullptr; }
  grants::JobIndex index() const { return index_; }
  /// The source index of each peer at the scheduler, by peer; kNoSource for a peer that is not in
  /// use. Empty before join().
  std::span<const grants::SourceIndex> sources() const { return sources_; }
  static constexpr grants::SourceIndex kNoSource{UINT16_MAX};
  static_assert(kMaxGrantSources <= kNoSource.index());

  /// A packet that this node only relays also uses the node's link.
  void on_relayed(std::size_t datagram_bytes, Instant now) {
    if (grants_ != nullptr) grants_->on_other(datagram_bytes + hop::kFrameOverheadBytes, now);
  }
  /// A packet with a block has come. Whatever becomes of the block, it has used the link and some
  /// of its sender's credit.
  void on_packet(const wire::BlockPacket& packet, hop::PeerIndex peer, bool marked, Instant now);
  /// A round with this many blocks begins; `bucket` as in Geometry.
  void on_round(std::size_t slot, std::uint16_t bucket, std::uint32_t blocks);
  /// This many blocks of the round have come, or never will. They make the progress of the job's
  /// iteration, which MLTCP calls bytes_ratio.
  void on_blocks(std::size_t slot, std::uint32_t blocks);
  /// The peer need not send the blocks that it was granted.
  void withdraw(hop::PeerIndex peer, Instant now);

  /// The grant for the peer. The caller fills in the epoch.
  wire::Grant grant_of(hop::PeerIndex peer) const;
  /// The number of blocks after which an ack is sent. A peer that may have only few blocks in
  /// flight waits for each ack, so its ack is sent when half of them are here.
  std::uint32_t ack_every() const;

 private:
  void give_back_spare();
  bool is_source(hop::PeerIndex peer) const {
    return peer.index() < sources_.size() && sources_[peer.index()] != kNoSource;
  }

  grants::GrantScheduler* grants_ = nullptr;
  grants::JobIndex index_;                    // index of this job at the scheduler
  std::vector<grants::SourceIndex> sources_;  // by peer
  std::vector<grants::SourceIndex> spare_;    // sources that reserve() has taken
  hop::Iteration iteration_;                  // counts all peers as one
  static constexpr hop::PeerIndex kAllPeers{0};
};

}  // namespace gradplane::job
