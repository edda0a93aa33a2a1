// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <atomic>
#include <cstdint>

#include "dataplane/ipc/layout.h"
#include "dataplane/ipc/shared_copy.h"

/// The two ends of a RingMemory. Each end is one object of one thread. It starts at index 0 of
/// memory that is all zero and keeps its own index privately; a value of the other side is read
/// once, checked, and only then used. An impossible index makes the end broken() for good. This
/// ends the session of this rank and no other. No call blocks, allocates, throws or makes a system
/// call.
///
/// Orderings, each with its partner:
///   R0/A0  producer's store of tail / consumer's load: the entry is there.
///   R1/A1  consumer's store of head / producer's load: the entry may be overwritten.
///   D0/D1  in doorbell.h. The tail is stored and loaded sequentially consistent because of them.
namespace gradplane::ipc {

inline constexpr std::uint32_t kRingMask = kRingEntries - 1;

template <typename Entry>
class RingProducer {
 public:
  explicit RingProducer(RingMemory<Entry>& memory) noexcept : memory_(&memory) {}

  /// Publishes an entry. False when the ring is full or broken().
  [[nodiscard]] bool push(const Entry& entry) noexcept {
    if (tail_ - head_seen_ == kRingEntries && !find_room()) return false;
    store_shared(memory_->entries[tail_ & kRingMask], entry);
    ++tail_;
    memory_->tail.store(tail_, std::memory_order_seq_cst);  // R0, and first half of D1
    return true;
  }

  /// Whether the consumer has written an impossible index.
  bool broken() const noexcept { return broken_; }

 private:
  bool find_room() noexcept {
    const std::uint32_t head = memory_->head.load(std::memory_order_acquire);  // A1
    const std::uint32_t in_use = tail_ - head;
    if (in_use > kRingEntries) broken_ = true;
    if (broken_ || in_use == kRingEntries) return false;
    head_seen_ = head;
    return true;
  }

  RingMemory<Entry>* memory_;
  std::uint32_t tail_ = 0;
  std::uint32_t head_seen_ = 0;
  bool broken_ = false;
};

template <typename Entry>
class RingConsumer {
 public:
  explicit RingConsumer(RingMemory<Entry>& memory) noexcept : memory_(&memory) {}

  /// Takes the oldest entry. False if there is none or the ring is broken(). The entry is a copy of
  /// bytes that the other side wrote, so check it.
  [[nodiscard]] bool pop(Entry& out) noexcept {
    if (empty()) return false;
    out = load_shared(memory_->entries[head_ & kRingMask]);
    ++head_;
    memory_->head.store(head_, std::memory_order_release);  // R1
    return true;
  }

  /// Whether there is nothing to take now. Also the check between announcing sleep and sleeping.
  bool empty() noexcept {
    if (head_ != tail_seen_) return false;
    if (broken_) return true;
    const std::uint32_t tail = memory_->tail.load(std::memory_order_seq_cst);  // A0, and D0
    if (tail - head_ > kRingEntries) {
      broken_ = true;
      return true;
    }
    tail_seen_ = tail;
    return tail == head_;
  }

  /// Whether the producer has written an impossible index.
  bool broken() const noexcept { return broken_; }

 private:
  RingMemory<Entry>* memory_;
  std::uint32_t head_ = 0;
  std::uint32_t tail_seen_ = 0;
  bool broken_ = false;
};

}  // namespace gradplane::ipc
