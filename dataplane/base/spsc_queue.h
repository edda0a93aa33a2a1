// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <vector>

namespace gradplane {

/// A queue between two threads of one process: one pushes, one pops. Allocated once; neither side
/// waits.
template <typename T>
class SpscQueue {
 public:
  explicit SpscQueue(std::size_t capacity) : entries_(std::bit_ceil(capacity)) {}

  /// Adds an entry. False if the queue is full. Producer thread.
  [[nodiscard]] bool push(const T& value) {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    // Acquire: pairs with the release in pop(), so the consumer is done with the entry.
    if (tail - head_.load(std::memory_order_acquire) == entries_.size()) return false;
    entries_[tail & (entries_.size() - 1)] = value;
    // Release: pairs with the acquire in front(), so the consumer sees the entry.
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  /// The number of entries that push() would certainly take. Producer thread.
  std::size_t room() const {
    // Acquire: pairs with the release in pop().
    return entries_.size() -
           (tail_.load(std::memory_order_relaxed) - head_.load(std::memory_order_acquire));
  }

  /// Whether no entry waits to be popped. Producer thread.
  bool empty() const { return room() == entries_.size(); }

  /// The oldest entry; null if there is none. It stays valid until pop(). Consumer thread.
  T* front() {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    // Acquire: pairs with the release in push().
    if (head == tail_.load(std::memory_order_acquire)) return nullptr;
    return &entries_[head & (entries_.size() - 1)];
  }
  /// Removes the entry that front() has returned. Consumer thread.
  void pop() {
    // Release: pairs with the acquire in push() and room().
    head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

 private:
  std::vector<T> entries_;
  alignas(64) std::atomic<std::size_t> tail_{0};  // the producer writes, the consumer reads
  alignas(64) std::atomic<std::size_t> head_{0};  // the consumer writes, the producer reads
};

}  // namespace gradplane
