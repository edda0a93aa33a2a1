// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/base/time.h"
#include "dataplane/base/windowed_min.h"

namespace gradplane::grants {

/// Blocks of one grant, at most: UET's credit of four packets.
inline constexpr std::uint32_t kGrantBatch = 4;

/// What came, came marked and was lost: of a path, since somebody last looked.
class PathCounts {
 public:
  void on_arrived(bool marked) {
    ++arrived_;
    marked_ += marked ? 1 : 0;
  }
  void on_lost(std::uint32_t blocks) { lost_ += blocks; }
  /// Blocks that are known to have come or to be lost.
  std::uint32_t known() const { return arrived_ + lost_; }
  /// Whether more is lost than a link loses at random.
  bool lossy() const { return lost_ > arrived_ / 32; }

  /// A look at what came since the last one. The part of the rate to give up for marks, by the
  /// receiver's guard of UET's RCCC (ultraethernet/uet-htsim): half of what their smoothed share
  /// exceeds 0.3 by.
  double take_mark_cut();
  /// Whether enough is known, over as many looks as it took, to tell heavy losses from random ones:
  /// so many blocks, or more losses than are not heavy among so many.
  bool tells_losses() const;
  /// The part of the rate to give up for losses: their share, if it is heavy. Of what was sent too
  /// fast the share that was lost is what the pace must come down by.
  double loss_cut() const;
  /// After a verdict on losses.
  void forget_losses() { known_for_losses_ = known_lost_ = 0; }

 private:
  std::uint32_t arrived_ = 0;  // blocks
  std::uint32_t marked_ = 0;   // of these, with congestion experienced
  std::uint32_t lost_ = 0;
  double mark_share_ = 0;  // smoothed over looks
  // Of the looks since the last verdict.
  std::uint32_t known_for_losses_ = 0;
  std::uint32_t known_lost_ = 0;
};

/// What an epoch showed of the paths that all share.
struct PathSigns {
  double mark_cut = 0;  // the part of the pace to give up
  double loss_cut = 0;
  bool tells_losses = false;  // else loss_cut is no news
  bool lossy = false;         // for somebody
};

inline constexpr Duration kLeastLoopLifetime = Duration::seconds(10);

/// The loop from a grant to the data's arrival, of one source.
class LoopTime {
 public:
  bool known() const { return known_; }
  /// Without queues.
  Duration least() const { return least_.value(); }
  Duration smoothed() const { return smoothed_; }
  void add(Duration sample, Instant now);

 private:
  bool known_ = false;
  WindowedMin least_{kLeastLoopLifetime};
  Duration smoothed_;
};

/// How much credit may be outstanding over a downlink, and how fast it may be given.
///
/// The window is W = min(1.5 C RTTc, B + C RTT0): what covers the loop as it is, and what the
/// buffer before the downlink can hold of it (docs/protocol.md, section 6). The pace is 0.99 of the
/// link, and less while marks or heavy losses say that the narrow place is elsewhere: at most one
/// step per round trip down, and back in steps that grow. What losses took comes back a step for
/// each verdict on losses, so that the pace stays near what the narrow place bears.
class GrantWindow {
 public:
  struct Limits {
    std::uint64_t link_bits_per_second = 0;  // 0: unknown
    std::size_t buffer_bytes = 0;            // 0: learned
    std::size_t block_wire_bytes = 1500;
  };
  explicit GrantWindow(Limits limits);

  /// W, in full blocks.
  std::uint32_t blocks(Instant now) const;
  /// What may be on its way over a path of this RTT0 without a loss: of B what is lent, and C RTT0,
  /// in full blocks; W where the link is unknown. Half of it under pressure.
  std::uint32_t most_blocks(Duration least_loop, Instant now) const;
  /// What each of `senders` that start at once may send without a grant; at least 1.
  std::uint32_t unscheduled_blocks(std::size_t senders) const;
  /// The time that the link takes for a full window; RTTc where the link is unknown.
  Duration drain_time() const;
  Duration loop() const { return loop_; }

  /// When the pace allows the next grant.
  Instant free_at() const { return free_at_; }
  void on_granted(std::uint32_t blocks, Instant now);
  /// A granted block has come; grants are paced as if all were full.
  void on_granted_came(std::size_t wire_bytes);
  /// What came over the downlink without a grant.
  void on_other(std::size_t wire_bytes, Instant now);

  /// A block of a source with this loop came. RTT0 and RTTc are means over blocks: what is under
  /// way without a queue is the sum of every source's rate times its loop.
  void on_loop(const LoopTime& loop);
  /// A mean over blocks, with one more.
  static Duration mean_of_blocks(Duration mean, Duration sample);
  /// Whether a round trip has passed since the last look at marks and losses.
  bool epoch_over(Instant now) const { return now >= epoch_end_; }
  /// Whether what is found lost may have been granted before the pace last came down for losses.
  bool losses_are_old(Instant now) const { return now < old_losses_until_; }
  /// Slows down, or recovers, by what the epoch showed. A learned buffer only grows while nobody is
  /// lossy.
  void end_epoch(const PathSigns& signs, Instant now);
  /// The receive ring is nearly full: half the pace for a round trip.
  void on_pressure(Instant now);
  /// More would have been granted had the window been larger.
  void on_full() { was_full_ = true; }

  /// The pace as a part of the link's rate, before kPace.
  double pace() const { return pace_; }
  bool pressed(Instant now) const { return now < pressed_until_; }
  Instant pressed_until() const { return pressed_until_; }

 private:
  double link_bytes(Duration time) const;  // that the link carries in `time`
  double buffer_bytes() const;
  double window_bytes() const;
  Duration cost(double wire_bytes, Instant now) const;
  Duration burst(Instant now) const;

  Limits limits_;
  bool measured_ = false;
  Duration least_loop_;
  Duration loop_;
  /// Of a buffer that is not known, in halves of C RTT0; of an unknown link, of its first window.
  double allowance_ = 1;
  double pace_ = 1;
  double step_;  // of the pace, back up
  bool slowed_by_losses_ = false;
  Instant old_losses_until_ = Instant::from_ns(INT64_MIN / 4);
  Instant free_at_ = Instant::from_ns(INT64_MIN / 4);
  Instant pressed_until_ = Instant::from_ns(INT64_MIN / 4);

  Instant epoch_end_;
  bool was_full_ = false;  // in this epoch
};

}  // namespace gradplane::grants
