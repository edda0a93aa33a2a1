// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <optional>

#include "dataplane/base/time.h"
#include "dataplane/grants/grant_window.h"

namespace gradplane::grants {

/// Bounds how much credit of one source may be outstanding, so that a slow sender, or a path that
/// is narrow before it joins the others, cannot hold the whole window (SIRD, NSDI 2025: credit per
/// sender is bounded by what senders and the network report).
///
/// One grant at a time is watched. Credit that takes longer to be used than the link takes for a
/// full window has waited at the sender. The cap then becomes what the sender's rate would have
/// used in that time, so that slow senders hold no larger part of the window than of the link. The
/// time that even the smallest credit takes belongs to the path, and is not waiting. Marks and
/// losses on the path lower the cap too. It grows by a quarter with each watched grant that used it
/// and shows no such sign.
class SourceCap {
 public:
  static constexpr std::uint32_t kMin = 2;

  /// Blocks; UINT32_MAX while nothing calls for a cap.
  std::uint32_t blocks() const { return blocks_; }

  /// `blocks` more were granted, up to `total`. `unused` blocks of credit are then outstanding.
  void on_granted(std::uint32_t blocks, std::uint32_t total, std::uint32_t unused, Instant now);
  void on_block(bool congestion_experienced) { path_.on_arrived(congestion_experienced); }
  void on_lost(std::uint32_t blocks) { path_.on_lost(blocks); }
  /// The source has sent `sent_blocks`. Returns the time from the watched grant to the first packet
  /// that needed it, if this is that packet.
  std::optional<Duration> round_trip_sample(std::uint32_t sent_blocks, Instant now);
  /// The source has sent `sent_blocks`. A sender that is not slow uses its credit within `in_time`.
  /// A cap above `window` blocks is no cap.
  void on_used(std::uint32_t sent_blocks, Duration in_time, std::uint32_t window, Instant now);
  /// `unused` blocks of credit expired.
  void on_expired(std::uint32_t unused);
  /// Stops watching: the watched credit is no longer wanted.
  void forget() { watching_ = false; }

 private:
  std::uint32_t blocks_ = UINT32_MAX;
  bool watching_ = false;
  bool sampled_ = false;
  std::uint32_t watched_from_ = 0;
  std::uint32_t watched_total_ = 0;
  std::uint32_t watched_unused_ = 0;
  Instant watched_at_;
  Duration min_credit_took_;  // time of the last watched grant with at most kMin unused blocks
  PathCounts path_;
};

}  // namespace gradplane::grants
