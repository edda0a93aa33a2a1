// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/base/bitmap.h"
#include "dataplane/base/time.h"
#include "dataplane/hop/clock.h"
#include "dataplane/model/geometry.h"

namespace gradplane::hop {

/// Which blocks of one round still have to reach one peer, and in what order they go. LTP's
/// out-of-order transmission with selective acks (Chen et al., IWQoS 2023): no cumulative sequence,
/// no head-of-line wait, and three queues: what must arrive, what is new, what was lost and may
/// stay lost. LTP sends the last of them last. Here that is so only once repairs take more than an
/// eighth of a round: until then they go before new blocks, so that blocks become complete, and
/// their results leave, while others are still being pushed. A block belongs to exactly one of: not
/// offered, queued, in flight, acked, excluded. On a long path a repair in flight may be queued as
/// a copy too, behind all else: where a round trip is long and the pipe is empty, losing a repair
/// costs more than sending it twice.
class BlockSender {
 public:
  struct Pick {
    std::uint32_t block;
    bool retransmission;
    bool copy = false;  // of a block that is in flight and stays so
  };

  explicit BlockSender(std::size_t capacity_blocks);

  /// Starts over with the blocks of `range`, none offered. New blocks will go from the
  /// `rotation`th of the range on, around. `critical` (by block; nullptr: all are) names those that
  /// go first; it is only read here.
  void open(BlockRange range, std::uint32_t rotation, const Bitmap* critical = nullptr);
  /// Forgets everything; returns how many blocks were in flight.
  std::uint32_t close();

  /// The block's bytes are final: it may be sent.
  void offer(std::uint32_t block);
  void offer_all();

  std::uint32_t queued() const { return urgent_count_ + new_count_ + spare_count_ + copy_count_; }
  bool has_queued() const { return queued() > 0; }
  /// Takes the next block to send and counts it as in flight. has_queued() must hold.
  /// `copy_repairs`: should it be a repair, a copy of it is queued.
  Pick take(std::uint32_t now_us, bool copy_repairs = false);
  /// Every block of the range has been sent at least once.
  bool all_sent() const { return sent_count_ == range_.size(); }
  /// Whether `block` has been sent since open().
  bool was_sent(std::uint32_t block) const { return sent_.test(block - range_.begin); }
  bool is_acked(std::uint32_t block) const { return acked_.test(block - range_.begin); }
  bool is_critical(std::uint32_t block) const { return critical_.test(block - range_.begin); }

  /// Queues a copy of what was sent in the last `span` and is in flight, once for each round: the
  /// end of a round has nothing behind it that could prove a loss.
  void copy_tail(std::uint32_t now_us, Duration span);

  /// Queues a block whose bytes are final, in a round that is settled, to be sent all the same.
  /// False where that says nothing to the peer.
  bool repeat(std::uint32_t block);

  /// A peer's bitmap: words from `first_word` of the range on; every block before that has arrived.
  /// Counts the newly acked blocks that were in flight. Blocks never sent are ignored: a peer
  /// cannot have them.
  std::uint32_t on_ack(std::size_t first_word, std::span<const std::uint64_t> words);
  std::uint32_t on_complete();
  /// One block has arrived, known in another way. Returns 1 if it was in flight.
  std::uint32_t on_arrived(std::uint32_t block);
  /// How many blocks have been acked of which a peer's bitmap, made later, says that they have not
  /// arrived.
  std::uint32_t acked_beyond(std::size_t first_word, std::span<const std::uint64_t> words) const;
  /// The peer gathers no more: what it has not acked is excluded for ever. Returns how many of
  /// those were in flight.
  std::uint32_t on_closed();

  /// Blocks in flight that were sent more than `reorder_window` before `echo_us`, the sending time
  /// of a packet that arrived, are lost: queued again.
  struct Lost {
    std::uint32_t blocks = 0;
    std::uint32_t newest_us = 0;  // when the last of them was sent
  };
  Lost find_lost(std::uint32_t echo_us, Duration reorder_window);
  /// Queues the block that has waited longest, to make the peer say what it has. Returns how many
  /// (1 or 0).
  std::uint32_t probe(std::uint32_t now_us);

  bool complete() const { return acked_count_ == range_.size(); }
  /// Nothing of this round will be sent any more: each block is acked or excluded.
  bool settled() const { return closed_ || complete(); }
  /// How many blocks will not be sent any more.
  std::uint32_t settled_count() const { return closed_ ? range_.size() : acked_count_; }
  std::uint32_t excluded() const { return closed_ ? range_.size() - acked_count_ : 0; }
  std::uint32_t in_flight() const { return in_flight_count_; }
  BlockRange range() const { return range_; }

 private:
  std::uint32_t acknowledge_word(std::size_t w, std::uint64_t arrived);
  void queue_again(std::size_t i);
  std::size_t pop_next();
  void drop_copy(std::size_t i);
  Pick take_copy(std::uint32_t now_us);

  BlockRange range_;
  Bitmap critical_;
  Bitmap urgent_;  // critical ones; of a round without bounds those that were lost
  Bitmap new_;
  Bitmap spare_;   // lost ones that may stay lost: they use what new blocks leave
  Bitmap copies_;  // repairs in flight that may be sent once more
  Bitmap in_flight_;
  Bitmap acked_;
  Bitmap sent_;  // at least once
  std::vector<std::uint32_t> sent_us_;
  std::size_t cursor_ = 0;
  std::size_t start_ = 0;  // where the round began
  std::size_t first_open_word_ = 0;
  bool has_bounds_ = false;
  bool closed_ = false;
  bool tail_is_copied_ = false;
  std::uint32_t urgent_count_ = 0;
  std::uint32_t new_count_ = 0;
  std::uint32_t spare_count_ = 0;
  std::uint32_t copy_count_ = 0;
  std::uint32_t in_flight_count_ = 0;
  std::uint32_t acked_count_ = 0;
  std::uint32_t sent_count_ = 0;
  std::uint32_t repair_count_ = 0;  // of spare ones
};

}  // namespace gradplane::hop
