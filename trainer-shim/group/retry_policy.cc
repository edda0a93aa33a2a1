// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/group/retry_policy.h"

#include <algorithm>
#include <limits>

namespace gradplane::shim {

void RetryPolicy::begin_carrying(std::uint64_t op, std::int64_t now_ns) {
  carrying_ = true;
  carried_from_op_ = op;
  carried_from_ns_ = now_ns;
}

bool RetryPolicy::last_session_was_good(std::uint64_t op, std::int64_t now_ns) const {
  return carrying_ &&
         (op - carried_from_op_ >= kGoodSessionOps || now_ns - carried_from_ns_ >= kGoodSessionNs);
}

void RetryPolicy::fall_back(std::uint64_t op, std::int64_t now_ns) {
  if (last_session_was_good(op, now_ns)) doublings_ = 0;
  carrying_ = false;
  wait_ns_ = kFirstRetryNs << doublings_;
  due_ns_ = now_ns + wait_ns_;
  doublings_ = std::min(doublings_ + 1, kMaxRetryDoublings);
  // It is not known yet how fast the program's operations are over Gloo.
  gap_ops_ = 1;
  gap_from_ns_ = now_ns;
  checkpoint_ = op + gap_ops_;
}

std::int64_t RetryPolicy::attempt_limit_ns() const {
  if (wait_ns_ == 0) return std::numeric_limits<std::int64_t>::max();
  return std::max(kShortestAttemptNs, wait_ns_ / kWaitsPerAttempt);
}

RetryView RetryPolicy::view(std::int64_t now_ns) const {
  const auto not_negative = [](std::int64_t ns) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0));
  };
  return {not_negative(due_ns_ - now_ns), not_negative(now_ns - gap_from_ns_) / gap_ops_};
}

bool RetryPolicy::decide(std::span<const RetryView> views, std::int64_t now_ns) {
  RetryView slowest;
  for (const RetryView& v : views) {
    slowest.wait_ns = std::max(slowest.wait_ns, v.wait_ns);
    slowest.op_ns = std::max(slowest.op_ns, v.op_ns);
  }
  if (slowest.wait_ns == 0) return true;
  // The gap at most doubles. The last operations may have been quick ones before a long pause, and
  // with doubling the next gap does not get much longer than the last.
  const std::uint64_t longest = std::min(2 * gap_ops_, kMaxOpsBetweenCheckpoints);
  const std::uint64_t too_early = slowest.wait_ns / std::max<std::uint64_t>(slowest.op_ns, 1);
  gap_ops_ = std::min(too_early, longest - 1) + 1;
  gap_from_ns_ = now_ns;
  checkpoint_ += gap_ops_;
  return false;
}

}  // namespace gradplane::shim
