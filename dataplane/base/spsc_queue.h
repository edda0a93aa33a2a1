// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <vector>

namespace gradplane {

/// Between two threads of one process: one pushes, one pops. Allocated once; neither side waits.
template <typename T>
class SpscQueue {
 public:
  explicit SpscQueue(std::size_t capacity) : entries_(std::bit_ceil(capacity)) {}

  /// Producer thread. False when full.
  [[nodiscard]] bool push(const T& value) {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) == entries_.size()) return false;  // A3
    entries_[tail & (entries_.size() - 1)] = value;
    tail_.store(tail + 1, std::memory_order_release);  // R2
    return true;
  }

  /// Producer thread. Entries that push() would surely take.
  std::size_t room() const {
    return entries_.size() -
           (tail_.load(std::memory_order_relaxed) - head_.load(std::memory_order_acquire));  // A3
  }

  /// Producer thread. Nothing waits to be popped.
  bool empty() const { return room() == entries_.size(); }

  /// Consumer thread. Null when empty; the entry stays valid until pop().
  T* front() {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return nullptr;  // A2
    return &entries_[head & (entries_.size() - 1)];
  }
  /// Consumer thread, after front() gave an entry.
  void pop() {
    head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release);  // R3
  }

 private:
  std::vector<T> entries_;
  alignas(64) std::atomic<std::size_t> tail_{0};  // producer: rw, consumer: ro
  alignas(64) std::atomic<std::size_t> head_{0};  // consumer: rw, producer: ro
};

}  // namespace gradplane
