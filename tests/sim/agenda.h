// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <vector>

#include "dataplane/base/indexed_heap.h"
#include "dataplane/base/time.h"

namespace gradplane::sim {

/// A node that still has work after so many turns at one time will never come to rest.
inline constexpr std::size_t kMaxTurns = 1'000'000;
/// In jobs with so many nodes, checking the invariants of every node takes longer than a turn.
inline constexpr std::size_t kManyNodes = 12;

/// When each host has something to do next. Trees of hundreds of hosts need it, because most hosts
/// sleep at any time.
class Agenda {
 public:
  explicit Agenda(std::size_t hosts) : wakes_(hosts) {}

  void set(std::size_t host, Instant at) { wakes_.set(static_cast<Index>(host), at); }
  /// Wakes the host, because something has arrived for it.
  void wake(std::size_t host) { set(host, Instant()); }
  Instant next() const { return wakes_.empty() ? Instant::never() : wakes_.top_key(); }

  /// The hosts that are due, in ascending order. The caller must set() each again.
  const std::vector<std::size_t>& take_due(Instant now) {
    due_.clear();
    while (!wakes_.empty() && wakes_.top_key() <= now) {
      due_.push_back(wakes_.top());
      wakes_.erase(wakes_.top());
    }
    std::sort(due_.begin(), due_.end());
    return due_;
  }

 private:
  using Index = IndexedHeap<Instant>::Index;
  IndexedHeap<Instant> wakes_;
  std::vector<std::size_t> due_;
};

}  // namespace gradplane::sim
