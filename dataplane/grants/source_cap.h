// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <optional>

#include "dataplane/base/time.h"
#include "dataplane/grants/grant_window.h"

namespace gradplane::grants {

/// How much credit of one source may be outstanding, so that a sender that is slow, or a path that
/// is narrow before it joins the others, does not hold the window hostage (SIRD, NSDI 2025: credit
/// per sender is bounded by what senders and the network report). One grant at a time is watched:
/// credit that takes longer to be used than a full window of everybody's has waited at the sender,
/// and the cap becomes what its rate would have used in time; so that slow senders hold no larger
/// part of the window than of the link. What the least credit takes is no waiting, but the path.
/// Marks and losses on its path lower it too. It grows by a quarter per watched grant that used it
/// and shows none of this.
class SourceCap {
 public:
  static constexpr std::uint32_t kLeast = 2;

  /// Blocks; UINT32_MAX while there is no reason for one.
  std::uint32_t blocks() const { return blocks_; }

  /// Credit was given: `blocks` more, up to `total`, of which `ahead` has not been used.
  void on_granted(std::uint32_t blocks, std::uint32_t total, std::uint32_t ahead, Instant now);
  void on_block(bool congestion_experienced) { path_.on_arrived(congestion_experienced); }
  void on_lost(std::uint32_t blocks) { path_.on_lost(blocks); }
  /// The source has sent `sent_blocks`: how long the watched grant took to have an effect, when
  /// this is the first packet that needed it.
  std::optional<Duration> loop_sample(std::uint32_t sent_blocks, Instant now);
  /// The source has sent `sent_blocks`. Credit of a sender that is not slow is used within
  /// `in_time`.
  void on_used(std::uint32_t sent_blocks, Duration in_time, std::uint32_t window, Instant now);
  /// `ahead` blocks of credit were not used at all.
  void on_expired(std::uint32_t ahead);
  /// What is watched is not wanted any more.
  void forget() { watching_ = false; }

 private:
  std::uint32_t blocks_ = UINT32_MAX;
  bool watching_ = false;
  bool sampled_ = false;
  std::uint32_t watched_from_ = 0;
  std::uint32_t watched_total_ = 0;
  std::uint32_t watched_ahead_ = 0;
  Instant watched_at_;
  Duration least_took_;  // of the last watched grant with no more than the least credit
  PathCounts path_;
};

}  // namespace gradplane::grants
