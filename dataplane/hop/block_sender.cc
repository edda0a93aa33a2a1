// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/hop/block_sender.h"

#include <algorithm>
#include <bit>

#include "dataplane/base/assert.h"
#include "dataplane/model/loss_bounds.h"

namespace gradplane::hop {

BlockSender::BlockSender(std::size_t capacity_blocks)
    : critical_(capacity_blocks),
      urgent_(capacity_blocks),
      new_(capacity_blocks),
      spare_(capacity_blocks),
      copies_(capacity_blocks),
      in_flight_(capacity_blocks),
      acked_(capacity_blocks),
      unproven_(capacity_blocks),
      sent_(capacity_blocks),
      sent_us_(capacity_blocks) {}

void BlockSender::open(BlockRange range, std::uint32_t rotation, const Bitmap* critical) {
  GP_ASSERT(range.size() <= sent_us_.size());
  range_ = range;
  for (Bitmap* b :
       {&critical_, &urgent_, &new_, &spare_, &copies_, &in_flight_, &acked_, &unproven_, &sent_}) {
    b->reset(range.size());
  }
  has_bounds_ = critical != nullptr;
  if (has_bounds_) {
    for (std::size_t b = critical->next_set(range.begin); b < range.end;
         b = critical->next_set(b + 1)) {
      critical_.set(b - range.begin);
    }
  } else {
    critical_.set_all();
  }
  cursor_ = start_ = range.size() == 0 ? 0 : rotation % range.size();
  first_open_word_ = 0;
  closed_ = tail_is_copied_ = false;
  urgent_count_ = new_count_ = spare_count_ = copy_count_ = 0;
  in_flight_count_ = acked_count_ = sent_count_ = repair_count_ = 0;
}

void BlockSender::carry_only(const Bitmap& blocks) {
  for (std::size_t w = 0; w < sent_.words_in_use(); ++w) {
    const std::uint64_t others = sent_.full_word(w) & ~blocks.word(w);
    for (Bitmap* b : {&sent_, &acked_, &unproven_}) b->set_word(w, others);
    acked_count_ += static_cast<std::uint32_t>(std::popcount(others));
  }
  sent_count_ = acked_count_;
}

std::uint32_t BlockSender::close() {
  const std::uint32_t forgotten = in_flight_count_;
  open({}, 0);
  return forgotten;
}

void BlockSender::offer(std::uint32_t block) {
  const std::size_t i = block - range_.begin;
  if (closed_ || urgent_.test(i) || new_.test(i) || sent_.test(i)) return;
  if (has_bounds_ && critical_.test(i)) {
    urgent_.set(i);
    ++urgent_count_;
  } else {
    new_.set(i);
    ++new_count_;
  }
}

void BlockSender::offer_all() {
  for (std::uint32_t b = range_.begin; b < range_.end; ++b) offer(b);
}

std::size_t BlockSender::pop_next() {
  if (urgent_count_ > 0) {
    const std::size_t i = urgent_.next_set(0);
    urgent_.clear(i);
    --urgent_count_;
    return i;
  }
  const bool repairs_are_cheap = repair_count_ * kRepairShare <= sent_count_;
  if (spare_count_ > 0 && (new_count_ == 0 || repairs_are_cheap)) {
    std::size_t i = spare_.next_set(start_);
    if (i == Bitmap::kNone) i = spare_.next_set(0);
    spare_.clear(i);
    --spare_count_;
    ++repair_count_;
    return i;
  }
  std::size_t i = new_.next_set(cursor_);
  if (i == Bitmap::kNone) i = new_.next_set(0);
  cursor_ = i + 1;
  new_.clear(i);
  --new_count_;
  return i;
}

BlockSender::Pick BlockSender::take(std::uint32_t now_us, bool copy_repairs) {
  if (urgent_count_ + new_count_ + spare_count_ == 0) return take_copy(now_us);
  const std::size_t i = pop_next();
  const bool retransmission = sent_.test(i);
  if (!retransmission) {
    sent_.set(i);
    ++sent_count_;
  } else if (copy_repairs) {
    copies_.set(i);
    ++copy_count_;
  }
  if (in_flight_count_ == 0) oldest_us_ = now_us;
  in_flight_.set(i);
  ++in_flight_count_;
  sent_us_[i] = now_us;
  return {range_.begin + static_cast<std::uint32_t>(i), retransmission};
}

BlockSender::Pick BlockSender::take_copy(std::uint32_t now_us) {
  const std::size_t i = copies_.next_set(0);
  drop_copy(i);
  sent_us_[i] = now_us;  // the younger of the two tells when both are lost
  return {range_.begin + static_cast<std::uint32_t>(i), true, true};
}

void BlockSender::drop_copy(std::size_t i) {
  if (!copies_.test(i)) return;
  copies_.clear(i);
  --copy_count_;
}

void BlockSender::copy_tail(std::uint32_t now_us, Duration span) {
  if (tail_is_copied_) return;
  tail_is_copied_ = true;
  const auto span_us = static_cast<std::uint32_t>(span.count_ns() / 1000);
  std::size_t i = in_flight_.next_set(first_open_word_ * Bitmap::kWordBits);
  for (; i != Bitmap::kNone; i = in_flight_.next_set(i + 1)) {
    if (copies_.test(i) || before_us(sent_us_[i], now_us - span_us)) continue;
    copies_.set(i);
    ++copy_count_;
  }
}

bool BlockSender::repeat(std::uint32_t block) {
  const std::size_t i = block - range_.begin;
  if (!closed_ && !(complete() && sent_.test(i))) return false;
  if (!copies_.test(i)) ++copy_count_;
  copies_.set(i);
  return true;
}

/// A block that was in flight and did not arrive.
void BlockSender::queue_again(std::size_t i) {
  drop_copy(i);
  in_flight_.clear(i);
  --in_flight_count_;
  if (critical_.test(i)) {
    urgent_.set(i);
    ++urgent_count_;
  } else {
    spare_.set(i);
    ++spare_count_;
  }
}

std::uint32_t BlockSender::acknowledge_word(std::size_t w, std::uint64_t arrived) {
  const std::uint64_t fresh = arrived & sent_.word(w) & ~acked_.word(w);
  if (fresh == 0 || closed_) return 0;
  const auto take_from = [&](Bitmap& set) {
    const auto count = static_cast<std::uint32_t>(std::popcount(fresh & set.word(w)));
    set.set_word(w, set.word(w) & ~fresh);
    return count;
  };
  const std::uint32_t from_flight = take_from(in_flight_);
  in_flight_count_ -= from_flight;
  urgent_count_ -= take_from(urgent_);
  spare_count_ -= take_from(spare_);
  copy_count_ -= take_from(copies_);
  acked_.set_word(w, acked_.word(w) | fresh);
  acked_count_ += static_cast<std::uint32_t>(std::popcount(fresh));
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
  drop_copy(i);
  return acknowledge_word(i / Bitmap::kWordBits, std::uint64_t{1} << (i % Bitmap::kWordBits));
}

std::uint32_t BlockSender::settle(std::uint32_t block) {
  const std::size_t i = block - range_.begin;
  if (closed_ || acked_.test(i)) return 0;
  if (new_.test(i)) --new_count_;
  if (urgent_.test(i)) --urgent_count_;
  new_.clear(i);
  urgent_.clear(i);
  unproven_.set(i);
  if (!sent_.test(i)) {  // and never will be
    sent_.set(i);
    ++sent_count_;
  }
  return on_arrived(block);
}

std::uint32_t BlockSender::acked_beyond(std::size_t first_word,
                                        std::span<const std::uint64_t> words) const {
  std::uint32_t count = 0;
  for (std::size_t w = first_word; w < acked_.words_in_use(); ++w) {
    const std::uint64_t arrived = w - first_word < words.size() ? words[w - first_word] : 0;
    count +=
        static_cast<std::uint32_t>(std::popcount(acked_.word(w) & ~unproven_.word(w) & ~arrived));
  }
  return count;
}

std::uint32_t BlockSender::on_closed() {
  const std::uint32_t forgotten = in_flight_count_;
  for (Bitmap* b : {&urgent_, &new_, &spare_, &copies_, &in_flight_}) b->reset(range_.size());
  urgent_count_ = new_count_ = spare_count_ = copy_count_ = in_flight_count_ = 0;
  closed_ = true;
  return forgotten;
}

BlockSender::Lost BlockSender::find_lost(std::uint32_t echo_us, Duration reorder_window) {
  const auto window_us = static_cast<std::uint32_t>(reorder_window.count_ns() / 1000);
  const std::uint32_t horizon = echo_us - window_us;
  Lost found;
  // Each ack asks, and mostly everything in flight is younger: then no block is looked at.
  if (in_flight_count_ == 0 || !before_us(oldest_us_, horizon)) return found;
  std::uint32_t oldest_us = echo_us;
  std::size_t i = in_flight_.next_set(first_open_word_ * Bitmap::kWordBits);
  for (; i != Bitmap::kNone; i = in_flight_.next_set(i + 1)) {
    if (!before_us(sent_us_[i], horizon)) {
      if (before_us(sent_us_[i], oldest_us)) oldest_us = sent_us_[i];
      continue;
    }
    queue_again(i);
    const bool is_newest = found.blocks == 0 || before_us(found.newest_us, sent_us_[i]);
    if (is_newest) found.newest_us = sent_us_[i];
    ++found.blocks;
  }
  oldest_us_ = oldest_us;
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
  queue_again(oldest);
  return 1;
}

}  // namespace gradplane::hop
