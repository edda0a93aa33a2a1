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

/// The most frames that wait between two queues of a port.
inline constexpr std::size_t kHandoverFrames = 256;

/// Frames that one queue of a port has received for another, because a device spreads frames by its
/// own rules. Each pair of queues has a ring, so each ring has one producer and one consumer.
class Handover {
 public:
  explicit Handover(std::size_t queue_count);
  /// Frees the frames that nobody has taken.
  ~Handover();
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;

  /// Gives a frame to another queue. False if there is no room; then the caller keeps the frame.
  /// Poll thread of `from`.
  [[nodiscard]] bool give(std::size_t from, std::size_t to, rte_mbuf* frame) noexcept {
    return ring(from, to).push(frame);
  }
  /// Takes as many frames as there are and fit. Poll thread of `to`.
  std::size_t take(std::size_t to, std::span<rte_mbuf*> out) noexcept;

 private:
  using Ring = SpscQueue<rte_mbuf*>;
  Ring& ring(std::size_t from, std::size_t to) { return *rings_[to * queue_count_ + from]; }

  std::size_t queue_count_;
  // By receiver and giver; empty if there is only one queue.
  std::vector<std::unique_ptr<Ring>> rings_;
};

}  // namespace gradplane::port
