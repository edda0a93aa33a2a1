// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "dataplane/base/time.h"

namespace gradplane::hop {

/// How often a job with open rounds looks whether anything moves.
inline constexpr Duration kLookInterval = Duration::ms(100);
/// How often a node that only waits for results asks its parent. It repeats an unanswered question
/// at every look.
inline constexpr Duration kAskInterval = Duration::seconds(1);

/// The questions of a node that only waits for results. A question is one of the node's blocks,
/// sent again. The answer is an ack that the parent makes after the question came. It shows whether
/// the parent still has what it had acknowledged. The question shows the parent that this child
/// takes part in the round.
class Inquiry {
 public:
  /// `round` only waits for results. Returns true when it is time to ask. For another round than
  /// before, the wait begins now.
  bool is_due(std::uint32_t round, Instant now);
  /// No round waits for results.
  void rest() { waits_ = false; }
  void on_asked(std::uint32_t now_us, Instant now);
  /// Whether an ack of `round` answers a question: it must echo a packet that was sent at or after
  /// the first unanswered question. `echo_us` is the sending time of that packet.
  bool is_answered_by(std::uint32_t round, std::uint32_t echo_us) const;
  void on_answer(Instant now);

  bool waits() const { return waits_; }
  std::uint32_t round() const { return round_; }
  /// For how long questions have not been answered.
  Duration unanswered_for() const { return kLookInterval * unanswered_; }

 private:
  bool waits_ = false;
  std::uint32_t round_ = 0;
  Instant next_at_;
  std::uint32_t first_asked_us_ = 0;  // sending time of the first unanswered question
  std::int64_t unanswered_ = 0;
};

}  // namespace gradplane::hop
