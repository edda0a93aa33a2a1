// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/base/spsc_queue.h"

struct rte_mbuf;

namespace gradplane::port {

/// Frames that wait between two queues of a port at most.
inline constexpr std::size_t kHandoverFrames = 256;

/// Frames that one queue of a port has received for another: a device spreads them by rules of its
/// own. There is a ring for each pair, so that each has one producer and one consumer.
class Handover {
 public:
  explicit Handover(std::size_t queue_count);
  /// Frees what nobody has taken.
  ~Handover();
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;

  /// Poll thread of `from`. False when there is no room; the frame then stays the caller's.
  [[nodiscard]] bool give(std::size_t from, std::size_t to, rte_mbuf* frame) noexcept {
    return ring(from, to).push(frame);
  }
  /// Poll thread of `to`: as many frames as there are and fit.
  std::size_t take(std::size_t to, std::span<rte_mbuf*> out) noexcept;

 private:
  using Ring = SpscQueue<rte_mbuf*>;
  Ring& ring(std::size_t from, std::size_t to) { return *rings_[to * queue_count_ + from]; }

  std::size_t queue_count_;
  std::vector<std::unique_ptr<Ring>> rings_;  // by receiver and giver; none for one queue
};

}  // namespace gradplane::port
