// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/core/block_sender.h"

#include <algorithm>
#include <bit>

#include "dataplane/base/assert.h"

namespace gradplane::core {

BlockSender::BlockSender(std::size_t capacity_blocks)
    : new_(capacity_blocks),
      lost_(capacity_blocks),
      in_flight_(capacity_blocks),
      acked_(capacity_blocks),
      sent_us_(capacity_blocks) {}

void BlockSender::open(BlockRange range, std::uint32_t rotation) {
  GP_ASSERT(range.size() <= sent_us_.size());
  range_ = range;
  for (Bitmap* b : {&new_, &lost_, &in_flight_, &acked_}) b->reset(range.size());
  cursor_ = range.size() == 0 ? 0 : rotation % range.size();
  first_open_word_ = 0;
  new_count_ = lost_count_ = in_flight_count_ = acked_count_ = 0;
}

std::uint32_t BlockSender::close() {
  const std::uint32_t forgotten = in_flight_count_;
  open({}, 0);
  return forgotten;
}

void BlockSender::offer(std::uint32_t block) {
  const std::size_t i = block - range_.begin;
  if (new_.test(i) || lost_.test(i) || in_flight_.test(i) || acked_.test(i)) return;
  new_.set(i);
  ++new_count_;
}

void BlockSender::offer_all() {
  for (std::uint32_t b = range_.begin; b < range_.end; ++b) offer(b);
}

BlockSender::Pick BlockSender::take(std::uint32_t now_us) {
  const bool retransmission = lost_count_ > 0;
  std::size_t i;
  if (retransmission) {
    i = lost_.next_set(0);
    lost_.clear(i);
    --lost_count_;
  } else {
    i = new_.next_set(cursor_);
    if (i == Bitmap::kNone) i = new_.next_set(0);
    cursor_ = i + 1;
    new_.clear(i);
    --new_count_;
  }
  in_flight_.set(i);
  ++in_flight_count_;
  sent_us_[i] = now_us;
  return {range_.begin + static_cast<std::uint32_t>(i), retransmission};
}

std::uint32_t BlockSender::acknowledge_word(std::size_t w, std::uint64_t arrived) {
  const std::uint64_t known = in_flight_.word(w) | lost_.word(w);
  const std::uint64_t fresh = arrived & known;
  if (fresh == 0) return 0;
  const auto from_flight = static_cast<std::uint32_t>(std::popcount(fresh & in_flight_.word(w)));
  const auto from_lost = static_cast<std::uint32_t>(std::popcount(fresh & lost_.word(w)));
  in_flight_.set_word(w, in_flight_.word(w) & ~fresh);
  lost_.set_word(w, lost_.word(w) & ~fresh);
  acked_.set_word(w, acked_.word(w) | fresh);
  in_flight_count_ -= from_flight;
  lost_count_ -= from_lost;
  acked_count_ += from_flight + from_lost;
  return from_flight;
}

std::uint32_t BlockSender::on_ack(std::size_t first_word, std::span<const std::uint64_t> words) {
  const std::size_t count = acked_.words_in_use();
  std::uint32_t acked = 0;
  for (std::size_t w = first_open_word_; w < std::min(first_word, count); ++w) {
    acked += acknowledge_word(w, acked_.full_word(w));
  }
  for (std::size_t k = 0; k < words.size() && first_word + k < count; ++k) {
    acked += acknowledge_word(first_word + k, words[k]);
  }
  while (first_open_word_ < count &&
         acked_.word(first_open_word_) == acked_.full_word(first_open_word_)) {
    ++first_open_word_;
  }
  return acked;
}

std::uint32_t BlockSender::on_complete() {
  return on_ack(acked_.words_in_use(), {});
}

std::uint32_t BlockSender::on_arrived(std::uint32_t block) {
  const std::size_t i = block - range_.begin;
  return acknowledge_word(i / Bitmap::kWordBits, std::uint64_t{1} << (i % Bitmap::kWordBits));
}

std::uint32_t BlockSender::find_lost(std::uint32_t echo_us, Duration reorder_window) {
  const auto window_us = static_cast<std::uint32_t>(reorder_window.count_ns() / 1000);
  const std::uint32_t horizon = echo_us - window_us;
  std::uint32_t found = 0;
  std::size_t i = in_flight_.next_set(first_open_word_ * Bitmap::kWordBits);
  for (; i != Bitmap::kNone; i = in_flight_.next_set(i + 1)) {
    if (!before_us(sent_us_[i], horizon)) continue;
    in_flight_.clear(i);
    lost_.set(i);
    ++found;
  }
  in_flight_count_ -= found;
  lost_count_ += found;
  return found;
}

std::uint32_t BlockSender::probe(std::uint32_t now_us) {
  std::size_t oldest = Bitmap::kNone;
  std::uint32_t oldest_age = 0;
  std::size_t i = in_flight_.next_set(first_open_word_ * Bitmap::kWordBits);
  for (; i != Bitmap::kNone; i = in_flight_.next_set(i + 1)) {
    const std::uint32_t age = now_us - sent_us_[i];
    if (oldest != Bitmap::kNone && age <= oldest_age) continue;
    oldest = i;
    oldest_age = age;
  }
  if (oldest == Bitmap::kNone) return 0;
  in_flight_.clear(oldest);
  lost_.set(oldest);
  --in_flight_count_;
  ++lost_count_;
  return 1;
}

}  // namespace gradplane::core
