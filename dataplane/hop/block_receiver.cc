// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/hop/block_receiver.h"

#include <algorithm>
#include <bit>

#include "dataplane/base/assert.h"
#include "dataplane/hop/block_sender.h"

namespace gradplane::hop {

void BlockReceiver::open(BlockRange range) {
  range_ = range;
  arrived_.reset(range.size());
  arrived_count_ = 0;
  first_gap_word_ = end_word_ = 0;
  unacked_packets_ = 0;
  echoes_ = {};
  last_path_ = 0;
  owed_since_ = newest_at_ = {};
  has_heard_ = owes_ack_ = has_request_ = closed_ = false;
}

void BlockReceiver::carry_only(const Bitmap& blocks) {
  for (std::size_t w = 0; w < arrived_.words_in_use(); ++w) {
    arrived_.set_word(w, arrived_.full_word(w) & ~blocks.word(w));
    arrived_count_ += static_cast<std::uint32_t>(std::popcount(arrived_.word(w)));
    if (arrived_.word(w) != 0) end_word_ = w + 1;
  }
  skip_full_words();
}

void BlockReceiver::skip_full_words() {
  while (first_gap_word_ < end_word_ &&
         arrived_.word(first_gap_word_) == arrived_.full_word(first_gap_word_)) {
    ++first_gap_word_;
  }
}

bool BlockReceiver::accept(std::uint32_t block) {
  GP_ASSERT(range_.contains(block) && !closed_);
  const std::size_t i = block - range_.begin;
  if (arrived_.test(i)) return false;
  arrived_.set(i);
  ++arrived_count_;
  end_word_ = std::max(end_word_, i / Bitmap::kWordBits + 1);
  skip_full_words();
  return true;
}

bool BlockReceiver::note_packet(const Arrival& packet, Instant now) {
  // The next ack tells the sender the newest sending time. Blocks that the sender has sent a
  // reorder window earlier on this path, and that the ack lacks, count as lost there.
  Echo& echo = echoes_[packet.path];
  if (!echo.heard || !before_us(packet.timestamp_us, echo.sent_us)) {
    echo = {.sent_us = packet.timestamp_us, .received = now, .heard = true, .is_news = true};
  }
  has_heard_ = true;
  ++unacked_packets_;
  newest_at_ = now;
  if (!owes_ack_) owed_since_ = now;
  owes_ack_ = true;
  return unacked_packets_ >= packet.ack_every || packet.duplicate || packet.last || closed_ ||
         complete();
}

/// The next path in turn with packets that no ack has reported; if there is none, the path of the
/// last ack.
std::size_t BlockReceiver::path_with_news() const {
  for (std::size_t n = 1; n <= kMaxPaths; ++n) {
    const std::size_t path = (last_path_ + n) % kMaxPaths;
    if (echoes_[path].is_news) return path;
  }
  return last_path_;
}

void BlockReceiver::fill_ack(Ack& out, Instant now) {
  last_path_ = path_with_news();
  Echo& echo = echoes_[last_path_];
  echo.is_news = false;
  out.path = static_cast<std::uint8_t>(last_path_);
  out.flags = 0;
  if (complete()) out.flags |= wire::kFlagComplete;
  if (closed_) out.flags |= wire::kFlagClosed;
  out.first_word = static_cast<std::uint16_t>(first_gap_word_);
  out.word_count = end_word_ - first_gap_word_;
  for (std::size_t k = 0; k < out.word_count; ++k)
    out.words[k] = arrived_.word(first_gap_word_ + k);
  out.body = {.echo_us = echo.sent_us,
              .ack_delay_us = static_cast<std::uint32_t>(
                  std::max<std::int64_t>(0, (now - echo.received).count_ns() / 1000)),
              .unscheduled_blocks = 0,
              .total_blocks = 0,
              .marked_packets = 0,
              .oldest_round = 0};
  unacked_packets_ = 0;
  owes_ack_ = echoes_[path_with_news()].is_news;
}

}  // namespace gradplane::hop
