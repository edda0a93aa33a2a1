// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/base/bitmap.h"
#include "dataplane/base/time.h"
#include "dataplane/hop/clock.h"
#include "dataplane/hop/path.h"
#include "dataplane/model/geometry.h"

namespace gradplane::hop {

/// Decides which blocks of one round still have to reach one peer, and in which order they go. This
/// is LTP's out-of-order transmission with selective acks (Chen et al., IWQoS 2023). It has no
/// cumulative sequence number and no head-of-line blocking. It has three queues: blocks that must
/// arrive, new blocks, and lost blocks that may stay lost.
///
/// LTP always sends the third queue last. Here it goes before new blocks until repairs take more
/// than an eighth of the round. So blocks become complete, and their results leave, while other
/// blocks are still being pushed.
///
/// Each block is in exactly one state: not offered, queued, in flight, acked or excluded. Besides,
/// it may be queued as a copy, behind everything else; to send a copy changes no state. On a long
/// path there are copies of repairs in flight, because the loss of a repair costs a long round trip
/// there and a copy costs little. copy_tail() and repeat() queue copies, too.
class BlockSender {
 public:
  struct Pick {
    std::uint32_t block;
    bool retransmission;
    bool copy = false;    // sending it changes no block's state; true for parity, too
    bool parity = false;  // a row of parity: `block` is its number
  };

  explicit BlockSender(std::size_t capacity_blocks);

  /// Starts over with the blocks of `range`; none is offered yet. New blocks go from block number
  /// `rotation` of the range on, and wrap around. `critical` (by block; nullptr: all blocks)
  /// contains the blocks that go first; it is only read during this call.
  void open(BlockRange range, std::uint32_t rotation, const Bitmap* critical = nullptr);
  /// Called right after open(): only these blocks, by their number in the range, go to the peer.
  /// The others are settled, as if they had been sent.
  void carry_only(const Bitmap& blocks);
  /// Forgets everything; returns how many blocks were in flight.
  PathBlocks close();

  /// The block's bytes are final: it may be sent.
  void offer(std::uint32_t block);
  void offer_all();

  std::uint32_t queued() const { return originals() + copy_count_ + parity_left(); }
  bool has_queued() const { return queued() > 0; }
  /// Queued copies of blocks in flight. A question about a settled round is no such copy.
  std::uint32_t copies() const { return settled() ? 0 : copy_count_; }
  bool has_only_copies() const { return originals() == 0 && parity_left() == 0 && copies() > 0; }
  bool has_originals() const { return originals() > 0; }
  /// Queued rows of parity. They go after all blocks and before copies.
  std::uint32_t parity_left() const { return settled() ? 0 : parity_end_ - parity_next_; }
  /// Whether blocks are queued that must arrive: lost ones or critical ones.
  bool has_urgent() const { return urgent_ones() > 0; }
  /// How new blocks of a round are sent. open() makes it kAlone.
  enum class Way : std::uint8_t {
    kAlone,     // to the peer alone
    kMember,    // to the peer's group; they count as in flight to the peer
    kListener,  // to the group, at the pace of others; they do not count as in flight
  };
  void set_way(Way way) { way_ = way; }
  Way way() const { return way_; }
  /// An offered block has been sent to the group. True if it counts as in flight to this peer. It
  /// may reach a peer that is no member, too.
  bool on_group_sent(std::uint32_t block, std::uint32_t now_us);
  /// Whether the block is offered and has not been sent.
  bool is_new(std::uint32_t block) const {
    const std::size_t i = block - range_.begin;
    return new_.test(i) || (urgent_.test(i) && !sent_.test(i));
  }
  /// Takes what to send next: a block, a row of parity, or a copy. Only a Pick without `copy` is in
  /// flight from now on. has_queued() must hold. With `copy_repairs`, a repair is also queued as a
  /// copy.
  Pick take(std::uint32_t now_us, bool copy_repairs = false, std::size_t path = kDirectPath);
  /// The block that take() would take; nothing if that is a copy or nothing is queued.
  std::optional<std::uint32_t> peek() const;
  /// Whether every block of the range has been sent at least once.
  bool all_sent() const { return sent_count_ == range_.size(); }
  /// Offered blocks that are to go to a group and have not gone.
  std::uint32_t left_to_group() const {
    return way_ == Way::kAlone ? 0 : new_count_ + unsent_urgent_;
  }
  /// Blocks of the range that have not been sent yet.
  std::uint32_t unsent() const { return range_.size() - sent_count_; }
  /// Whether a smaller share of this range than of the other one has been sent. Neither is empty.
  bool is_behind(const BlockSender& other) const {
    return std::uint64_t{sent_count_} * other.range_.size() <
           std::uint64_t{other.sent_count_} * range_.size();
  }
  /// Whether `block` has been sent since open().
  bool was_sent(std::uint32_t block) const { return sent_.test(block - range_.begin); }
  bool is_acked(std::uint32_t block) const { return acked_.test(block - range_.begin); }
  bool is_critical(std::uint32_t block) const { return critical_.test(block - range_.begin); }

  /// Queues a copy of each block that was sent within the last `span` and is in flight, once for
  /// each round. The last blocks of a round have no later blocks behind them that could prove their
  /// loss.
  void copy_tail(std::uint32_t now_us, Duration span);
  /// Queues this many rows of parity instead of copies, once for each round.
  void queue_parity(std::size_t rows);
  /// Parity that is sent now may recover blocks in flight. Only an echo later than `until_us` by a
  /// reorder window tells whether it has.
  void await_parity(std::uint32_t until_us);

  /// Queues a block of a settled round again, as a question to the peer. Returns false if the
  /// question would tell the peer nothing.
  bool repeat(std::uint32_t block);

  /// Takes a peer's bitmap, whose words begin with `first_word` of the range; every block before
  /// that has arrived. Returns how many newly acked blocks were in flight. Blocks that were never
  /// sent are ignored, because the peer cannot have them.
  PathBlocks on_ack(std::size_t first_word, std::span<const std::uint64_t> words);
  PathBlocks on_complete();
  /// A packet other than an ack shows that a block has arrived. Returns 1 if it was in flight.
  PathBlocks on_arrived(std::uint32_t block);
  /// Nobody needs the block any more, whether it has arrived or not: it will not be sent. Returns 1
  /// if it was in flight.
  PathBlocks settle(std::uint32_t block);
  /// The number of acked blocks that this later bitmap of the peer reports as missing.
  std::uint32_t acked_beyond(std::size_t first_word, std::span<const std::uint64_t> words) const;
  /// The peer has closed the round: blocks that it has not acked are excluded for ever. Returns how
  /// many of them were in flight.
  PathBlocks on_closed();

  /// Finds lost blocks and queues them again. A block in flight is lost if it was sent more than
  /// `reorder_window` before `echo_us`, which is the sending time of a packet that arrived. That
  /// says nothing of blocks on other paths than the packet's.
  struct Lost {
    std::uint32_t blocks = 0;
    std::uint32_t newest_us = 0;  // when the last of them was sent
    std::uint32_t last = 0;       // the last lost block, by number
  };
  Lost find_lost(std::uint32_t echo_us, Duration reorder_window, std::size_t path = kDirectPath);
  /// Queues the block that has waited longest, so that the peer answers with its state. Returns the
  /// number of queued blocks (1 or 0).
  PathBlocks probe(std::uint32_t now_us);

  bool complete() const { return acked_count_ == range_.size(); }
  /// Nothing of this round will be sent any more: each block is acked or excluded.
  bool settled() const { return closed_ || complete(); }
  std::uint32_t acked() const { return acked_count_; }
  /// How many blocks will not be sent any more.
  std::uint32_t settled_count() const { return closed_ ? range_.size() : acked_count_; }
  std::uint32_t excluded() const { return closed_ ? range_.size() - acked_count_ : 0; }
  std::uint32_t in_flight() const { return in_flight_count_; }
  PathBlocks in_flight_by_path() const {
    return {.all = in_flight_count_, .over_route = routed_count_};
  }
  /// No block in flight was sent before this time.
  std::uint32_t oldest_us() const { return oldest_us_; }
  BlockRange range() const { return range_; }

 private:
  PathBlocks acknowledge_word(std::size_t w, std::uint64_t arrived);
  PathBlocks queue_again(std::size_t i);
  bool repairs_go_first() const;
  std::size_t choose() const;
  std::size_t choose_urgent() const;
  void drop_new(std::size_t i);
  std::size_t pop_next();
  std::uint32_t new_ones() const { return way_ == Way::kAlone ? new_count_ : 0; }
  std::uint32_t urgent_ones() const {
    return way_ == Way::kAlone ? urgent_count_ : urgent_count_ - unsent_urgent_;
  }
  std::uint32_t originals() const { return urgent_ones() + new_ones() + spare_count_; }
  void begin_flight(std::size_t i, std::uint32_t now_us);
  void note_path(std::size_t i, std::size_t path);
  bool is_on_path(std::size_t i, std::size_t path) const;
  bool uses_routes() const;
  void drop_copy(std::size_t i);
  Pick take_copy(std::uint32_t now_us);
  Pick take_parity();

  BlockRange range_;
  Bitmap critical_;
  Bitmap urgent_;  // critical blocks; in a round without bounds, lost blocks
  Bitmap new_;
  Bitmap spare_;   // lost blocks that may stay lost
  Bitmap copies_;  // blocks in flight, or settled ones (questions), to send once more
  Bitmap in_flight_;
  Bitmap acked_;     // or settled
  Bitmap unproven_;  // of these, blocks that were settled without proof of arrival
  Bitmap sent_;      // blocks sent at least once
  Bitmap to_group_;  // blocks sent to the group at least once
  Bitmap by_group_;  // blocks in flight in packets to the group
  std::array<Bitmap, kMaxRoutes> routed_;  // blocks in flight on each route
  std::array<std::uint32_t, kMaxRoutes> routed_count_{};
  std::vector<std::uint32_t> sent_us_;
  std::uint32_t oldest_us_ = 0;  // no block in flight was sent before this time
  std::size_t cursor_ = 0;
  std::size_t start_ = 0;  // where new blocks of the round began
  std::size_t first_open_word_ = 0;
  bool has_bounds_ = false;
  bool closed_ = false;
  Way way_ = Way::kAlone;
  bool tail_is_guarded_ = false;
  std::uint32_t parity_next_ = 0;  // the next row to send
  std::uint32_t parity_end_ = 0;
  std::uint32_t urgent_count_ = 0;
  std::uint32_t unsent_urgent_ = 0;  // urgent blocks that were never sent
  std::uint32_t new_count_ = 0;
  std::uint32_t spare_count_ = 0;
  std::uint32_t copy_count_ = 0;
  std::uint32_t in_flight_count_ = 0;
  std::uint32_t acked_count_ = 0;
  std::uint32_t sent_count_ = 0;
  std::uint32_t repair_count_ = 0;  // repairs of spare blocks
};

}  // namespace gradplane::hop
