// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/hop/edge.h"
#include "dataplane/model/limits.h"

namespace gradplane::hop {

/// Counts how far a job is in its iteration, for each peer that it sends to. This is MLTCP's
/// bytes_ratio (arXiv 2402.09589). It is counted and not guessed from pauses, because rounds are
/// announced.
///
/// An iteration ends when a bucket comes again. A round without a bucket belongs to the iteration
/// in which it comes; in a job without buckets each round is an iteration. The size of an iteration
/// is that of the one before. The size of the first is what was announced so far.
class Iteration {
 public:
  /// Counts for `peers` peers at first, and for `max_peers` at most.
  explicit Iteration(std::size_t peers, std::size_t max_peers = 0);
  /// Makes room for `peers` peers. The new ones have nothing announced in this iteration yet.
  void grow(std::size_t peers) { peers_.resize(peers); }

  /// A round of `bucket` (0: none) opens in `slot`. Returns true if an iteration begins with it.
  bool on_round(std::size_t slot, std::uint16_t bucket);
  /// This number of the round's blocks will go to the peer.
  void on_announced(PeerIndex peer, std::uint32_t blocks) {
    peers_[peer.index()].announced += blocks;
  }
  /// This number of the round's blocks has arrived at the peer, or never will. (If the latter did
  /// not count, MLTCP would never see the end of the iteration.) Blocks of an older iteration do
  /// not count.
  void on_settled(std::size_t slot, PeerIndex peer, std::uint32_t blocks);
  /// Whether the round that was opened last in `slot` belongs to an earlier iteration than that of
  /// slot `other`.
  bool is_earlier(std::size_t slot, std::size_t other) const {
    return static_cast<std::int32_t>(slot_number_[slot] - slot_number_[other]) < 0;
  }
  /// The share of the iteration that the peer has or will never need, from 0 to 1.
  double ratio(PeerIndex peer) const;

 private:
  struct Peer {
    std::uint64_t before = 0;  // announced in the iteration before
    std::uint64_t announced = 0;
    std::uint64_t settled = 0;
  };

  std::uint32_t number_ = 0;  // number of the iteration; the first is 1
  bool has_buckets_ = false;
  std::vector<Peer> peers_;
  std::vector<std::uint32_t> last_seen_;  // by bucket: the iteration in which it last came
  std::array<std::uint32_t, kRoundSlots> slot_number_{};  // the iteration of the slot's round
};

}  // namespace gradplane::hop
