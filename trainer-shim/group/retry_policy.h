// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <span>

namespace gradplane::shim {

/// The ranks wait for this time after a fallback before they try again. After each further
/// fallback they wait twice as long, up to kMaxRetryDoublings doublings.
inline constexpr std::int64_t kFirstRetryNs = 2'000'000'000;
inline constexpr std::uint32_t kMaxRetryDoublings = 5;
static_assert((kFirstRetryNs << kMaxRetryDoublings) == 64'000'000'000, "at most 64 s");
/// The trainer stands still while the ranks try. Each step of a later attempt may take the wait
/// before it divided by kWaitsPerAttempt, but at least this time.
inline constexpr std::int64_t kShortestAttemptNs = 2'000'000'000;
inline constexpr std::int64_t kWaitsPerAttempt = 8;
/// A session that carried this number of operations, or lasted for this time, was a good one. After
/// it the ranks wait for the shortest time again.
inline constexpr std::uint64_t kGoodSessionOps = 1024;
inline constexpr std::int64_t kGoodSessionNs = 60'000'000'000;
/// The ranks compare their clocks at checkpoints. There are at most this many operations between
/// two checkpoints, and at most twice as many as between the two before.
inline constexpr std::uint64_t kMaxOpsBetweenCheckpoints = 16;

/// What one rank says at a checkpoint, by its own clock.
struct RetryView {
  std::uint64_t wait_ns = 0;  // until this rank wants to try again; 0: now
  std::uint64_t op_ns = 0;    // mean time of an operation here since the last checkpoint
};

/// Decides when the ranks of a group that has fallen back try to return to gradplane. They wait for
/// some seconds, but their clocks differ, and all of them must try at the same operation. So they
/// exchange their views at checkpoints, and each rank computes the next checkpoint from the same
/// views. A slow program has a checkpoint at each operation, and a fast one has few. Time is an
/// argument.
class RetryPolicy {
 public:
  /// The ranks carry operations from number `op` on.
  void begin_carrying(std::uint64_t op, std::int64_t now_ns);

  /// The ranks go through Gloo from operation `op` on.
  void fall_back(std::uint64_t op, std::int64_t now_ns);

  /// The operation before which the ranks exchange their views. Valid after fall_back().
  std::uint64_t checkpoint() const { return checkpoint_; }

  /// How long this rank may take for its next attempt, at each of its two steps.
  std::int64_t attempt_limit_ns() const;

  RetryView view(std::int64_t now_ns) const;

  /// Takes the views of all ranks at the checkpoint. True: all of them try now. False: the
  /// checkpoint has moved on. The answer and the checkpoint are the same on every rank.
  bool decide(std::span<const RetryView> views, std::int64_t now_ns);

 private:
  bool last_session_was_good(std::uint64_t op, std::int64_t now_ns) const;

  bool carrying_ = false;
  std::uint64_t carried_from_op_ = 0;
  std::int64_t carried_from_ns_ = 0;
  std::uint32_t doublings_ = 0;
  std::int64_t wait_ns_ = 0;  // 0: the ranks have never fallen back
  std::int64_t due_ns_ = 0;
  std::uint64_t checkpoint_ = 0;
  std::uint64_t gap_ops_ = 1;  // from the last checkpoint, or the fallback, to checkpoint_
  std::int64_t gap_from_ns_ = 0;
};

}  // namespace gradplane::shim
