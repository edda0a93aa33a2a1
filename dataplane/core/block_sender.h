// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/base/bitmap.h"
#include "dataplane/base/time.h"
#include "dataplane/core/geometry.h"

namespace gradplane::core {

/// Which blocks of one round still have to reach one peer, and in what order they go: lost critical
/// blocks, then new ones in an order that rotates with the round, (then lost ones that may stay
/// lost). LTP's out-of-order transmission with selective acks: no cumulative sequence, no
/// head-of-line wait. A block belongs to exactly one of: not offered, queued (new or lost), in
/// flight, acked.
class BlockSender {
 public:
  struct Pick {
    std::uint32_t block;
    bool retransmission;
  };

  explicit BlockSender(std::size_t capacity_blocks);

  /// Starts over with the blocks of `range`, none offered. New blocks will go from the
  /// `rotation`th of the range on, around.
  void open(BlockRange range, std::uint32_t rotation);
  /// Forgets everything; returns how many blocks were in flight.
  std::uint32_t close();

  /// The block's bytes are final: it may be sent.
  void offer(std::uint32_t block);
  void offer_all();

  bool has_queued() const { return new_count_ + lost_count_ > 0; }
  /// Takes the next block to send and counts it as in flight. has_queued() must hold.
  Pick take(std::uint32_t now_us);
  /// Every block of the range has been sent at least once.
  bool all_sent() const {
    return new_count_ == 0 && lost_count_ + in_flight_count_ + acked_count_ == range_.size();
  }
  /// Whether `block` has been sent since open().
  bool was_sent(std::uint32_t block) const {
    const std::size_t i = block - range_.begin;
    return in_flight_.test(i) || lost_.test(i) || acked_.test(i);
  }

  /// A peer's bitmap: words from `first_word` of the range on; every block before that has arrived.
  /// Counts the newly acked blocks that were in flight. Blocks never offered are ignored: a peer
  /// cannot have them.
  std::uint32_t on_ack(std::size_t first_word, std::span<const std::uint64_t> words);
  std::uint32_t on_complete();
  /// One block has arrived, known in another way. Returns 1 if it was in flight.
  std::uint32_t on_arrived(std::uint32_t block);

  /// Blocks in flight that were sent more than `reorder_window` before `echo_us`, the sending time
  /// of a packet that arrived, are lost: queued again. Returns how many.
  std::uint32_t find_lost(std::uint32_t echo_us, Duration reorder_window);
  /// Queues the block that has waited longest, to make the peer say what it has. Returns how many
  /// (1 or 0).
  std::uint32_t probe(std::uint32_t now_us);

  bool complete() const { return acked_count_ == range_.size(); }
  std::uint32_t in_flight() const { return in_flight_count_; }
  BlockRange range() const { return range_; }

 private:
  std::uint32_t acknowledge_word(std::size_t w, std::uint64_t arrived);

  BlockRange range_;
  Bitmap new_;
  Bitmap lost_;
  Bitmap in_flight_;
  Bitmap acked_;
  std::vector<std::uint32_t> sent_us_;
  std::size_t cursor_ = 0;
  std::size_t first_open_word_ = 0;
  std::uint32_t new_count_ = 0;
  std::uint32_t lost_count_ = 0;
  std::uint32_t in_flight_count_ = 0;
  std::uint32_t acked_count_ = 0;
};

/// Whether a 32-bit microsecond clock says that `a` is before `b`.
inline bool before_us(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) < 0;
}

inline std::uint32_t clock_us(Instant now) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(now.count_ns()) / 1000);
}

}  // namespace gradplane::core
