// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstdint>

#include "dataplane/base/time.h"
#include "dataplane/hop/inquiry.h"

namespace gradplane::job {

/// The maximum that one look counts for. If a look comes late, the node itself was stopped or had
/// no processor, and something may have moved meanwhile.
inline constexpr Duration kLongestStep = hop::kLookInterval * 2;
/// The limit as a multiple of the silence after which a node counts as dead. So a dead node is
/// noticed first, and the reason names it as dead.
inline constexpr std::int64_t kStallSilences = 2;
/// The minimum limit. Once probes are regular, they go every 40 ms. The three before may take 1.5 s
/// in all. So more than eighty probes go within this time. Under bounded staleness there may be
/// fewer, because a peer may refuse a round for long. A path that loses three quarters of its
/// packets in each direction fails to move anything in this time less than once in a hundred.
inline constexpr Duration kMinStall = Duration::seconds(5);
static_assert(kMinStall >= hop::kLookInterval * 50, "lost questions make no stall");
static_assert(kStallSilences >= 2, "a silent node is suspected before the round is given up");

/// The time after which a job in which nothing moves ends, given the time for which a node may be
/// silent.
constexpr Duration stall_after(Duration suspect_after) {
  return std::max(suspect_after * kStallSilences, kMinStall);
}

/// Measures for how long nothing has moved in a job. Time in which this node was stopped does not
/// count.
class ProgressWatch {
 public:
  /// `limit` zero: never stalled.
  explicit ProgressWatch(Duration limit) : limit_(limit) {}

  bool is_on() const { return limit_ > Duration{}; }
  Duration limit() const { return limit_; }

  /// An event has happened that can happen only a limited number of times in a round.
  void moved() { quiet_ = {}; }

  Instant next_look() const { return next_look_; }
  void look(Instant now);
  bool is_stalled() const { return is_on() && quiet_ >= limit_; }
  Duration quiet() const { return quiet_; }
  /// No node owes anything, so nobody causes the pause. The watch looks for such a node again after
  /// a while.
  void postpone() { quiet_ = std::max(Duration{}, limit_ - hop::kAskInterval); }

 private:
  Duration limit_;
  Duration quiet_;
  Instant last_look_;
  Instant next_look_;
};

}  // namespace gradplane::job
