// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <vector>

namespace gradplane {

/// A first-in first-out queue of at most `capacity` entries, allocated once.
template <typename T>
class FixedQueue {
 public:
  explicit FixedQueue(std::size_t capacity) : entries_(capacity) {}

  bool empty() const { return count_ == 0; }
  bool full() const { return count_ == entries_.size(); }
  std::size_t size() const { return count_; }

  /// Adds an entry. False, and nothing happens, if the queue is full.
  [[nodiscard]] bool push(const T& value) {
    if (full()) return false;
    entries_[(head_ + count_) % entries_.size()] = value;
    ++count_;
    return true;
  }

  /// The oldest entry. The queue must not be empty.
  T& front() { return entries_[head_]; }
  const T& front() const { return entries_[head_]; }

  void pop() {
    head_ = (head_ + 1) % entries_.size();
    --count_;
  }

 private:
  std::vector<T> entries_;
  std::size_t head_ = 0;
  std::size_t count_ = 0;
};

}  // namespace gradplane
