// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/loopback/mailbox.h"

#include <bit>
#include <cstring>

#include "dataplane/base/assert.h"

namespace gradplane::port {

Mailbox::Mailbox(std::size_t cell_count, std::size_t cell_bytes)
    : mask_(cell_count - 1),
      cell_bytes_(cell_bytes),
      cells_(std::make_unique<Cell[]>(cell_count)),
      storage_(std::make_unique_for_overwrite<std::byte[]>(cell_count * cell_bytes)) {
  GP_ASSERT(cell_count >= 2 && std::has_single_bit(cell_count));
  for (std::size_t i = 0; i < cell_count; ++i) {
    cells_[i].sequence.store(i, std::memory_order_relaxed);
  }
}

bool Mailbox::post(const Letter& letter) noexcept {
  if (letter.payload.size() > cell_bytes_) return false;
  std::uint64_t position = tail_.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t sequence =
        cells_[position & mask_].sequence.load(std::memory_order_acquire);  // G2
    const auto lead = static_cast<std::int64_t>(sequence - position);
    if (lead < 0) return false;
    if (lead > 0) {
      position = tail_.load(std::memory_order_relaxed);
    } else if (tail_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
      break;
    }
  }
  Cell& cell = cells_[position & mask_];
  std::byte* place = storage_.get() + (position & mask_) * cell_bytes_;
  if (!letter.payload.empty()) {
    std::memcpy(place, letter.payload.data(), letter.payload.size());
  }
  cell.letter = letter;
  cell.letter.payload = {place, letter.payload.size()};
  cell.sequence.store(position + 1, std::memory_order_release);  // F1
  return true;
}

bool Mailbox::take(Taken& out) noexcept {
  Cell& cell = cells_[head_ & mask_];
  if (cell.sequence.load(std::memory_order_acquire) != head_ + 1) return false;  // F2
  cell.next_sequence = head_ + mask_ + 1;
  out.letter = cell.letter;
  out.token = &cell;
  ++head_;
  return true;
}

void Mailbox::give_back(void* token) noexcept {
  auto* cell = static_cast<Cell*>(token);
  cell->sequence.store(cell->next_sequence, std::memory_order_release);  // G1
}

}  // namespace gradplane::port
