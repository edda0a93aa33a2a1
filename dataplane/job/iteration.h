// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/model/limits.h"

namespace gradplane::job {

/// How far a job is in its iteration, for each peer that it sends to: MLTCP's bytes_ratio (arXiv
/// 2402.09589), counted and not guessed from pauses, because rounds are announced. An iteration
/// ends where a bucket comes again; a round of no bucket belongs to the iteration in which it
/// comes, and is one by itself in a job that has no buckets. What an iteration holds is what the
/// one before held; the first holds the rounds that were announced so far.
class Iteration {
 public:
  explicit Iteration(std::size_t peers);

  /// A round of `bucket` (0: none) opens in `slot`. True: an iteration begins with it.
  bool on_round(std::size_t slot, std::uint16_t bucket);
  /// So many of the round's blocks will go to the peer.
  void on_announced(std::uint16_t peer, std::uint32_t blocks) { peers_[peer].announced += blocks; }
  /// So many of them have arrived there, or never will (MLTCP would else never see its end). What
  /// is left of an older iteration does not count.
  void on_settled(std::size_t slot, std::uint16_t peer, std::uint32_t blocks);
  /// Of the round that was opened last in the slot: whether its iteration came before that of the
  /// other slot's round.
  bool is_earlier(std::size_t slot, std::size_t other) const {
    return static_cast<std::int32_t>(slot_number_[slot] - slot_number_[other]) < 0;
  }
  /// 0 to 1.
  double ratio(std::uint16_t peer) const;

 private:
  struct Peer {
    std::uint64_t before = 0;  // announced in the iteration before
    std::uint64_t announced = 0;
    std::uint64_t settled = 0;
  };

  std::uint32_t number_ = 0;  // of the iteration; the first is 1
  bool has_buckets_ = false;
  std::vector<Peer> peers_;
  std::vector<std::uint32_t> last_seen_;                  // by bucket: in which iteration
  std::array<std::uint32_t, kRoundSlots> slot_number_{};  // of which iteration the slot's round is
};

}  // namespace gradplane::job
