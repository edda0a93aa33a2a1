// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/base/bitmap.h"
#include "dataplane/base/time.h"
#include "dataplane/model/geometry.h"
#include "dataplane/wire/ack.h"

namespace gradplane::hop {

/// An ack goes at once after this number of blocks, and otherwise after this time. With many slow
/// senders the time decides. With a shorter time, acks would take a larger share of the link, which
/// results need.
inline constexpr std::uint32_t kAckEveryPackets = 16;
inline constexpr Duration kMaxAckDelay = Duration::ms(4);
/// While blocks keep coming and nothing is missing, the time is longer.
inline constexpr Duration kMaxSteadyAckDelay = Duration::ms(8);
/// Blocks keep coming as long as one has come within this time. The ack then goes this long after
/// the last one.
inline constexpr Duration kSteadyGap = Duration::us(2500);
/// How often a node looks whether an ack that waits is due.
inline constexpr Duration kAckLookInterval = Duration::us(500);
static_assert(kAckLookInterval < kSteadyGap && kSteadyGap < kMaxAckDelay);
static_assert(kMaxAckDelay < kMaxSteadyAckDelay);
/// Acks wait longer only where the smallest round trip is below this. A sender takes blocks for
/// lost when it has heard nothing of their round for kMaxAckDelay and a quarter of a round trip
/// (Flow::overtaking_time()), although it was answered meanwhile. The ack must come before that.
inline constexpr Duration kSteadyPath = Duration::ms(2);
static_assert(kSteadyGap + kSteadyPath <= kMaxAckDelay + kSteadyPath / 4);

/// Records which blocks of one round have arrived from one peer, and writes the acks to this peer.
/// An ack is LTP's out-of-order ack: the bitmap itself, from its first gap on. The next ack repairs
/// a lost one.
class BlockReceiver {
 public:
  explicit BlockReceiver(std::size_t capacity_blocks) : arrived_(capacity_blocks) {}

  void open(BlockRange range);

  /// Called right after open(): only these blocks, by their number in the range, come from the
  /// peer. The others count as arrived.
  void carry_only(const Bitmap& blocks);

  /// False for a block that had arrived before.
  bool accept(std::uint32_t block);
  /// What an arrived packet adds to the next ack, besides its block.
  struct Arrival {
    std::uint32_t timestamp_us = 0;
    bool duplicate = false;
    bool last = false;                           // the sender has nothing new to send
    std::size_t path = 0;                        // the path on which it came
    std::uint32_t ack_every = kAckEveryPackets;  // the most blocks before an ack
  };
  /// True when an ack should go at once.
  bool note_packet(const Arrival& packet, Instant now);

  /// No block is accepted any more; an ack that says so is owed.
  void close() { closed_ = owes_ack_ = true; }
  bool closed() const { return closed_; }

  bool complete() const { return arrived_count_ == range_.size(); }
  bool has(std::uint32_t block) const { return arrived_.test(block - range_.begin); }
  bool owes_ack() const { return owes_ack_; }
  /// Whether the ack goes in time, within kMaxAckDelay, if the next look sends it.
  bool may_look_later(Instant now) const {
    return now + kAckLookInterval - owed_since_ <= kMaxAckDelay;
  }
  /// Whether blocks keep coming, so that the ack may wait until the next look and longer.
  bool is_steady(Instant now) const {
    const Instant next_look = now + kAckLookInterval;
    return next_look - newest_at_ <= kSteadyGap && next_look - owed_since_ <= kMaxSteadyAckDelay;
  }
  /// Whether a request of the ack is in a queue, from which it comes when the ack is due.
  bool has_request() const { return has_request_; }
  void note_request(bool is_queued) { has_request_ = is_queued; }
  /// Whether packets have come on the path that no ack has reported.
  bool has_news_of(std::size_t path) const { return echoes_[path].is_news; }
  /// Whether packets have come on another path than the direct one.
  bool has_other_paths() const {
    return std::any_of(echoes_.begin() + 1, echoes_.end(), [](const Echo& e) { return e.heard; });
  }
  BlockRange range() const { return range_; }
  /// Whether anything of the round has come from the peer, used or not.
  bool has_heard() const { return has_heard_; }
  std::uint32_t arrived() const { return arrived_count_; }
  std::uint32_t missing() const { return range_.size() - arrived_count_; }

  struct Ack {
    std::uint8_t flags = 0;
    std::uint8_t path = 0;  // the path of the echo
    std::uint16_t first_word = 0;
    std::size_t word_count = 0;
    wire::AckBody body;
    std::array<std::uint64_t, wire::kMaxAckWords> words;
  };
  /// Writes the ack that is owed. An ack has the echo of one path, so another ack is owed if
  /// packets have come on several paths.
  void fill_ack(Ack& out, Instant now);

 private:
  void skip_full_words();

  BlockRange range_;
  Bitmap arrived_;
  std::uint32_t arrived_count_ = 0;
  std::size_t first_gap_word_ = 0;
  std::size_t end_word_ = 0;  // the word after the last one with an arrived block
  std::uint32_t unacked_packets_ = 0;
  /// What acks report of one path: its newest packet.
  struct Echo {
    std::uint32_t sent_us = 0;
    Instant received;
    bool heard = false;
    bool is_news = false;  // no ack has reported it
  };
  std::size_t path_with_news() const;

  std::array<Echo, kMaxPaths> echoes_;
  std::size_t last_path_ = 0;  // the path of the last ack
  Instant owed_since_;         // when the first packet came that no ack has reported
  Instant newest_at_;          // when the last packet came
  bool has_heard_ = false;
  bool owes_ack_ = false;
  bool has_request_ = false;
  bool closed_ = false;
};

}  // namespace gradplane::hop
