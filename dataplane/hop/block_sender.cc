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
      to_group_(capacity_blocks),
      by_group_(capacity_blocks),
      routed_{Bitmap(capacity_blocks), Bitmap(capacity_blocks)},
      sent_us_(capacity_blocks) {}
static_assert(kMaxRoutes == 2, "the constructor has a bitmap for each route");

void BlockSender::open(BlockRange range, std::uint32_t rotation, const Bitmap* critical) {
  GP_ASSERT(range.size() <= sent_us_.size());
  range_ = range;
  for (Bitmap* b : {&critical_, &urgent_, &new_, &spare_, &copies_, &in_flight_, &acked_,
                    &unproven_, &sent_, &to_group_, &by_group_}) {
    b->reset(range.size());
  }
  for (Bitmap& routed : routed_) routed.reset(range.size());
  routed_count_ = {};
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
  closed_ = tail_is_guarded_ = false;
  way_ = Way::kAlone;
  parity_next_ = parity_end_ = 0;
  urgent_count_ = unsent_urgent_ = new_count_ = spare_count_ = copy_count_ = 0;
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

PathBlocks BlockSender::close() {
  const PathBlocks forgotten = in_flight_by_path();
  open({}, 0);
  return forgotten;
}

void BlockSender::offer(std::uint32_t block) {
  const std::size_t i = block - range_.begin;
  if (closed_ || urgent_.test(i) || new_.test(i) || sent_.test(i)) return;
  if (has_bounds_ && critical_.test(i)) {
    urgent_.set(i);
    ++urgent_count_;
    ++unsent_urgent_;
  } else {
    new_.set(i);
    ++new_count_;
  }
}

void BlockSender::offer_all() {
  for (std::uint32_t b = range_.begin; b < range_.end; ++b) offer(b);
}

bool BlockSender::repairs_go_first() const {
  const bool repairs_are_cheap = repair_count_ * kRepairShare <= sent_count_;
  return spare_count_ > 0 && (new_ones() == 0 || repairs_are_cheap);
}

/// Skips blocks that were never sent if the round has a group, because the group sends those.
std::size_t BlockSender::choose_urgent() const {
  std::size_t i = urgent_.next_set(0);
  while (way_ != Way::kAlone && !sent_.test(i)) i = urgent_.next_set(i + 1);
  return i;
}

/// The next queued block that is no copy.
std::size_t BlockSender::choose() const {
  if (urgent_ones() > 0) return choose_urgent();
  const bool repairs = repairs_go_first();
  const Bitmap& queue = repairs ? spare_ : new_;
  const std::size_t i = queue.next_set(repairs ? start_ : cursor_);
  return i == Bitmap::kNone ? queue.next_set(0) : i;
}

std::optional<std::uint32_t> BlockSender::peek() const {
  if (originals() == 0) return std::nullopt;
  return range_.begin + static_cast<std::uint32_t>(choose());
}

std::size_t BlockSender::pop_next() {
  const std::size_t i = choose();
  if (urgent_ones() > 0) {
    if (!sent_.test(i)) --unsent_urgent_;
    urgent_.clear(i);
    --urgent_count_;
  } else if (repairs_go_first()) {
    spare_.clear(i);
    --spare_count_;
    ++repair_count_;
  } else {
    cursor_ = i + 1;
    new_.clear(i);
    --new_count_;
  }
  return i;
}

bool BlockSender::uses_routes() const {
  return std::any_of(routed_count_.begin(), routed_count_.end(),
                     [](std::uint32_t blocks) { return blocks > 0; });
}

void BlockSender::note_path(std::size_t i, std::size_t path) {
  if (path == kDirectPath) return;
  routed_[path - 1].set(i);
  ++routed_count_[path - 1];
}

/// Whether a block in flight is on this path.
bool BlockSender::is_on_path(std::size_t i, std::size_t path) const {
  if (path == kGroupPath) return by_group_.test(i);
  if (path != kDirectPath) return routed_[path - 1].test(i);
  return !by_group_.test(i) && std::none_of(routed_.begin(), routed_.end(),
                                            [i](const Bitmap& routed) { return routed.test(i); });
}

void BlockSender::begin_flight(std::size_t i, std::uint32_t now_us) {
  if (in_flight_count_ == 0) oldest_us_ = now_us;
  in_flight_.set(i);
  ++in_flight_count_;
  sent_us_[i] = now_us;
}

BlockSender::Pick BlockSender::take(std::uint32_t now_us, bool copy_repairs, std::size_t path) {
  if (originals() == 0) return parity_left() > 0 ? take_parity() : take_copy(now_us);
  const std::size_t i = pop_next();
  const bool retransmission = sent_.test(i);
  if (!retransmission) {
    sent_.set(i);
    ++sent_count_;
  } else if (copy_repairs) {
    copies_.set(i);
    ++copy_count_;
  }
  begin_flight(i, now_us);
  note_path(i, path);
  return {range_.begin + static_cast<std::uint32_t>(i), retransmission};
}

bool BlockSender::on_group_sent(std::uint32_t block, std::uint32_t now_us) {
  const std::size_t i = block - range_.begin;
  if (closed_ || acked_.test(i)) return false;
  to_group_.set(i);
  if (way_ != Way::kMember || !is_new(block)) return false;
  drop_new(i);
  sent_.set(i);
  ++sent_count_;
  begin_flight(i, now_us);
  by_group_.set(i);
  return true;
}

/// Removes a block that was never sent from the queues.
void BlockSender::drop_new(std::size_t i) {
  if (new_.test(i)) --new_count_;
  if (urgent_.test(i)) --urgent_count_, --unsent_urgent_;
  new_.clear(i);
  urgent_.clear(i);
}

BlockSender::Pick BlockSender::take_copy(std::uint32_t now_us) {
  const std::size_t i = copies_.next_set(0);
  drop_copy(i);
  sent_us_[i] = now_us;  // the later of the two packets proves the loss of both
  return {range_.begin + static_cast<std::uint32_t>(i), true, true};
}

void BlockSender::queue_parity(std::size_t rows) {
  if (tail_is_guarded_) return;
  tail_is_guarded_ = true;
  parity_next_ = 0;
  parity_end_ = static_cast<std::uint32_t>(rows);
}

BlockSender::Pick BlockSender::take_parity() {
  return {.block = parity_next_++, .retransmission = false, .copy = true, .parity = true};
}

void BlockSender::await_parity(std::uint32_t until_us) {
  std::size_t i = in_flight_.next_set(first_open_word_ * Bitmap::kWordBits);
  for (; i != Bitmap::kNone; i = in_flight_.next_set(i + 1)) {
    // Echoes of parity prove nothing about blocks that went to a group.
    if (!by_group_.test(i) && before_us(sent_us_[i], until_us)) sent_us_[i] = until_us;
  }
}

void BlockSender::drop_copy(std::size_t i) {
  if (!copies_.test(i)) return;
  copies_.clear(i);
  --copy_count_;
}

void BlockSender::copy_tail(std::uint32_t now_us, Duration span) {
  if (tail_is_guarded_) return;
  tail_is_guarded_ = true;
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

/// Queues a block again that was in flight and did not arrive. Returns it, with its path.
PathBlocks BlockSender::queue_again(std::size_t i) {
  PathBlocks left{.all = 1, .to_group = by_group_.test(i) ? 1U : 0U};
  by_group_.clear(i);
  for (std::size_t r = 0; uses_routes() && r < kMaxRoutes; ++r) {
    if (!routed_[r].test(i)) continue;
    routed_[r].clear(i);
    --routed_count_[r];
    left.over_route[r] = 1;
  }
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
  return left;
}

PathBlocks BlockSender::acknowledge_word(std::size_t w, std::uint64_t arrived) {
  const std::uint64_t fresh = arrived & (sent_.word(w) | to_group_.word(w)) & ~acked_.word(w);
  if (fresh == 0 || closed_) return {};
  const auto take_from = [&](Bitmap& set) {
    const auto count = static_cast<std::uint32_t>(std::popcount(fresh & set.word(w)));
    set.set_word(w, set.word(w) & ~fresh);
    return count;
  };
  (void)take_from(by_group_);
  PathBlocks from_flight{.all = take_from(in_flight_)};
  in_flight_count_ -= from_flight.all;
  for (std::size_t r = 0; uses_routes() && r < kMaxRoutes; ++r) {
    from_flight.over_route[r] = take_from(routed_[r]);
    routed_count_[r] -= from_flight.over_route[r];
  }
  const std::uint64_t unsent = fresh & ~sent_.word(w);
  unsent_urgent_ -= static_cast<std::uint32_t>(std::popcount(unsent & urgent_.word(w)));
  urgent_count_ -= take_from(urgent_);
  if (unsent != 0) {  // blocks that only the group has sent
    new_count_ -= take_from(new_);
    sent_.set_word(w, sent_.word(w) | unsent);
    sent_count_ += static_cast<std::uint32_t>(std::popcount(unsent));
  }
  spare_count_ -= take_from(spare_);
  copy_count_ -= take_from(copies_);
  acked_.set_word(w, acked_.word(w) | fresh);
  acked_count_ += static_cast<std::uint32_t>(std::popcount(fresh));
  return from_flight;
}

PathBlocks BlockSender::on_ack(std::size_t first_word, std::span<const std::uint64_t> words) {
  const std::size_t count = acked_.words_in_use();
  PathBlocks acked;
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

PathBlocks BlockSender::on_complete() {
  return on_ack(acked_.words_in_use(), {});
}

PathBlocks BlockSender::on_arrived(std::uint32_t block) {
  const std::size_t i = block - range_.begin;
  drop_copy(i);
  return acknowledge_word(i / Bitmap::kWordBits, std::uint64_t{1} << (i % Bitmap::kWordBits));
}

PathBlocks BlockSender::settle(std::uint32_t block) {
  const std::size_t i = block - range_.begin;
  if (closed_ || acked_.test(i)) return {};
  unproven_.set(i);
  if (!sent_.test(i)) {  // it will never be sent
    drop_new(i);
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

PathBlocks BlockSender::on_closed() {
  const PathBlocks forgotten = in_flight_by_path();
  for (Bitmap* b : {&urgent_, &new_, &spare_, &copies_, &in_flight_}) b->reset(range_.size());
  for (Bitmap& routed : routed_) routed.reset(range_.size());
  urgent_count_ = unsent_urgent_ = new_count_ = spare_count_ = copy_count_ = in_flight_count_ = 0;
  routed_count_ = {};
  closed_ = true;
  return forgotten;
}

BlockSender::Lost BlockSender::find_lost(std::uint32_t echo_us, Duration reorder_window,
                                         std::size_t path) {
  const auto window_us = static_cast<std::uint32_t>(reorder_window.count_ns() / 1000);
  const std::uint32_t horizon = echo_us - window_us;
  Lost found;
  // This runs for each ack. Mostly every block in flight is younger, and then no block is examined.
  if (in_flight_count_ == 0 || !before_us(oldest_us_, horizon)) return found;
  std::uint32_t oldest_us = echo_us;
  std::size_t i = in_flight_.next_set(first_open_word_ * Bitmap::kWordBits);
  for (; i != Bitmap::kNone; i = in_flight_.next_set(i + 1)) {
    if (!before_us(sent_us_[i], horizon) || !is_on_path(i, path)) {
      if (before_us(sent_us_[i], oldest_us)) oldest_us = sent_us_[i];
      continue;
    }
    (void)queue_again(i);
    const bool is_newest = found.blocks == 0 || before_us(found.newest_us, sent_us_[i]);
    if (is_newest) found.newest_us = sent_us_[i];
    ++found.blocks;
    found.last = range_.begin + static_cast<std::uint32_t>(i);
  }
  oldest_us_ = oldest_us;
  return found;
}

PathBlocks BlockSender::probe(std::uint32_t now_us) {
  std::size_t oldest = Bitmap::kNone;
  std::uint32_t oldest_age = 0;
  std::size_t i = in_flight_.next_set(first_open_word_ * Bitmap::kWordBits);
  for (; i != Bitmap::kNone; i = in_flight_.next_set(i + 1)) {
    const std::uint32_t age = now_us - sent_us_[i];
    if (oldest != Bitmap::kNone && age <= oldest_age) continue;
    oldest = i;
    oldest_age = age;
  }
  if (oldest == Bitmap::kNone) return {};
  return queue_again(oldest);
}

}  // namespace gradplane::hop
