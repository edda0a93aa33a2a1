// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "dataplane/base/fixed_queue.h"
#include "dataplane/base/time.h"
#include "dataplane/hop/edge.h"

namespace gradplane::hop {

struct AckRequest {
  EdgeId edge;
  std::uint32_t round = 0;
  Instant deadline;
  bool is_urgent = false;
};

/// The acks that a node owes under one plan, in the order in which they are due.
class AckQueue {
 public:
  /// Has room for the acks of this many edges.
  explicit AckQueue(std::size_t edges)
      : urgent_(std::max<std::size_t>(1, edges) * kRoundSlots * 2),
        delayed_(std::max<std::size_t>(1, edges) * kRoundSlots * 2),
        postponed_(std::max<std::size_t>(1, edges) * kRoundSlots * 2) {}

  /// Requests an ack at once. A full queue costs only time: the peer sends the block again and gets
  /// its ack then.
  void request(const EdgeId& edge, std::uint32_t round, Instant now) {
    (void)urgent_.push({edge, round, now, true});
  }
  /// Requests the ack of a receiver, at once or in kMaxAckDelay. Until an ack goes at once, the
  /// receiver has one request that is not urgent. docs/decisions/0048 says why that request stays
  /// in the queue then. If the queue is full, the next packet asks again.
  void request(const EdgeId& edge, std::uint32_t round, BlockReceiver& receiver, bool at_once,
               Instant now) {
    if (at_once) {
      receiver.note_request(false);
      return request(edge, round, now);
    }
    if (receiver.has_request()) return;
    receiver.note_request(delayed_.push({edge, round, now + kMaxAckDelay, false}));
  }
  /// Takes a request back, which is due again after kAckLookInterval. Its ack must go now if this
  /// returns false.
  [[nodiscard]] bool postpone(const AckRequest& request, Instant now) {
    return postponed_.push({request.edge, request.round, now + kAckLookInterval, false});
  }

  /// The next request that is due.
  std::optional<AckRequest> take(Instant now) {
    if (!urgent_.empty()) return take_from(urgent_);
    for (FixedQueue<AckRequest>* queue : {&delayed_, &postponed_})
      if (!queue->empty() && queue->front().deadline <= now) return take_from(*queue);
    return std::nullopt;
  }

  bool empty() const { return urgent_.empty() && delayed_.empty() && postponed_.empty(); }
  /// When take() has a request. A time in the past means at once; Instant::never() if no ack is
  /// owed.
  Instant next_due() const {
    if (!urgent_.empty()) return Instant();
    Instant due = Instant::never();
    if (!delayed_.empty()) due = delayed_.front().deadline;
    if (!postponed_.empty()) due = std::min(due, postponed_.front().deadline);
    return due;
  }

 private:
  static AckRequest take_from(FixedQueue<AckRequest>& queue) {
    const AckRequest request = queue.front();
    queue.pop();
    return request;
  }

  FixedQueue<AckRequest> urgent_;
  FixedQueue<AckRequest> delayed_;
  FixedQueue<AckRequest> postponed_;
};

}  // namespace gradplane::hop
