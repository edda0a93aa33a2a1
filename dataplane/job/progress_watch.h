// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstdint>

#include "dataplane/base/time.h"

namespace gradplane::job {

/// How often a job with open rounds looks whether anything moves.
inline constexpr Duration kLookInterval = Duration::ms(100);
/// A look that comes late counts as this much time: the node itself was stopped, or had no
/// processor, and what it did not see may well have moved.
inline constexpr Duration kLongestStep = kLookInterval * 2;
/// How often a node that waits for results alone asks its parent. A question that is not answered
/// is put again at every look.
inline constexpr Duration kAskInterval = Duration::seconds(1);
/// In silences after which a node counts as dead. A dead node is noticed first, and named as such.
inline constexpr std::int64_t kStallSilences = 2;
/// Probes go every 40 ms, so this is more than a hundred of them: a path that loses three quarters
/// of what it carries in each direction moves something in this time, save for once in a thousand.
inline constexpr Duration kLeastStall = Duration::seconds(5);
static_assert(kLeastStall >= kLookInterval * 50, "lost questions make no stall");
static_assert(kStallSilences >= 2, "a silent node is suspected before the round is given up");

/// How long nothing may move in a job before it ends, given how long a node may be silent.
constexpr Duration stall_after(Duration suspect_after) {
  return std::max(suspect_after * kStallSilences, kLeastStall);
}

/// For how long nothing has moved in a job, as far as its node was awake to see it.
class ProgressWatch {
 public:
  /// `limit` zero: never stalled.
  explicit ProgressWatch(Duration limit) : limit_(limit) {}

  bool is_on() const { return limit_ > Duration{}; }
  Duration limit() const { return limit_; }

  /// Something that can happen only so many times in a round has happened.
  void moved() { quiet_ = {}; }

  Instant next_look() const { return next_look_; }
  void look(Instant now);
  bool is_stalled() const { return is_on() && quiet_ >= limit_; }
  Duration quiet() const { return quiet_; }
  /// Nobody is to blame for the pause: it may be looked for somebody again after a while.
  void postpone() { quiet_ = std::max(Duration{}, limit_ - kAskInterval); }

 private:
  Duration limit_;
  Duration quiet_;
  Instant last_look_;
  Instant next_look_;
};

/// The questions of a node that waits for results alone: each is one of its blocks, sent again.
/// The answer is an ack, made after the question came. It shows that the parent still has what it
/// had acknowledged; and the question shows the parent that this child takes part in the round.
class Inquiry {
 public:
  /// `round` waits for results alone. True when it is time to ask.
  bool is_due(std::uint32_t round, Instant now);
  /// No round does.
  void rest() { waits_ = false; }
  void on_asked(std::uint32_t now_us, Instant now);
  /// Whether an ack of `round` that echoes a packet of the time `echo_us` answers a question.
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
  std::uint32_t first_asked_us_ = 0;  // of those that are not answered
  std::int64_t unanswered_ = 0;
};

}  // namespace gradplane::job
