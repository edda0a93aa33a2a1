// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/base/time.h"
#include "dataplane/base/windowed_min.h"

namespace gradplane::grants {

/// Counts the blocks of one path that arrived, arrived marked, or were lost, and decides what part
/// of the rate to give up for them.
class PathCounts {
 public:
  void on_arrived(bool marked) {
    ++arrived_;
    marked_ += marked ? 1 : 0;
  }
  void on_lost(std::uint32_t blocks) { lost_ += blocks; }
  /// Blocks whose fate is known: they arrived or were lost.
  std::uint32_t known() const { return arrived_ + lost_; }
  /// Whether more was lost than a link loses at random.
  bool lossy() const { return lost_ > arrived_ / 32; }

  /// Ends an epoch of counting. Returns the part of the rate to give up for marks, by the
  /// receiver's guard of UET's RCCC (ultraethernet/uet-htsim): half of the amount by which the
  /// smoothed share of marked blocks exceeds 0.3.
  double take_mark_cut();
  /// Whether the epochs since the last verdict tell heavy losses from random ones: enough blocks
  /// are known, or more of them are lost than light losses explain.
  bool has_loss_verdict() const;
  /// The part of the rate to give up for losses: the share that was lost, if that is heavy. When
  /// blocks are sent too fast, the share that is lost is the share by which the pace is too high.
  double loss_cut() const;
  /// Begins to collect losses for the next verdict.
  void forget_losses() { known_for_losses_ = known_lost_ = 0; }

 private:
  // In the current epoch, in blocks.
  std::uint32_t arrived_ = 0;
  std::uint32_t marked_ = 0;
  std::uint32_t lost_ = 0;
  double mark_share_ = 0;  // smoothed over epochs
  // In the epochs since the last verdict.
  std::uint32_t known_for_losses_ = 0;
  std::uint32_t known_lost_ = 0;
};

/// Signs of congestion that an epoch has shown on the paths that all jobs share.
struct PathSigns {
  double mark_cut = 0;  // the part of the pace to give up
  double loss_cut = 0;
  bool has_loss_verdict = false;  // without one, loss_cut says nothing new
  bool lossy = false;             // some job lost more than a link loses at random
};

inline constexpr Duration kMinRoundTripLifetime = Duration::seconds(10);

/// The round trip from a grant to the arrival of the data that needed it, of one source.
class RoundTrip {
 public:
  bool known() const { return known_; }
  /// The minimum, which excludes queues.
  Duration min() const { return min_.value(); }
  Duration smoothed() const { return smoothed_; }
  void add(Duration sample, Instant now);

 private:
  bool known_ = false;
  WindowedMin min_{kMinRoundTripLifetime};
  Duration smoothed_;
};

/// How many blocks may be in flight over a downlink, and how fast grants may be given. B is the
/// buffer before the downlink, C the link's rate, RTT0 the round trip without queues and RTTc the
/// round trip as it is now.
///
/// The pace of grants is 0.99 of the link. It is lower while marks or heavy losses say that the
/// bottleneck is elsewhere: it goes down at most once per round trip, and back up in growing steps.
/// After losses it goes up only once per verdict on losses, so that it stays near what the
/// bottleneck carries.
class GrantWindow {
 public:
  struct Limits {
    std::uint64_t link_bits_per_second = 0;  // 0: unknown; then nothing is paced
    std::size_t buffer_bytes = 0;            // 0: unknown; then kAssumedBufferBytes
    std::size_t block_wire_bytes = 1500;     // of a full block
  };
  /// The buffer that a shallow switch has for a port to which many nodes send.
  static constexpr std::size_t kAssumedBufferBytes = 128 << 10;

  explicit GrantWindow(Limits limits);

  /// The most that max_in_flight_blocks() returns.
  static constexpr std::uint32_t kMaxBlocks = 1U << 16;

  /// The time that the link takes for this many full blocks; RTTc if the link's rate is unknown.
  Duration drain_time(std::uint32_t blocks) const;
  /// How many full blocks may be in flight over paths of this RTT0 without a loss: three quarters
  /// of B, plus C RTT0. If the link's rate is unknown, it is a window that grows while it is used
  /// up and shrinks with losses. Ring pressure halves it.
  std::uint32_t max_in_flight_blocks(Duration min_round_trip, Instant now) const;
  /// RTTc.
  Duration round_trip() const { return round_trip_; }

  /// When the pace allows the next grant.
  Instant free_at() const { return free_at_; }
  void on_granted(std::uint32_t blocks, Instant now);
  /// A granted block arrived. Grants are paced as if all blocks were full, so the time that a
  /// smaller block leaves is given back here.
  void on_granted_arrived(std::size_t wire_bytes);
  /// Something arrived over the downlink that no grant was charged for.
  void on_other(std::size_t wire_bytes, Instant now);

  /// A block of a source with this round trip arrived. RTT0 and RTTc are means over blocks, because
  /// the bytes in flight without a queue are the sum, over all sources, of rate times round trip.
  void on_round_trip(const RoundTrip& round_trip);
  /// A mean over blocks, with one more sample.
  static Duration mean_over_blocks(Duration mean, Duration sample);
  /// Whether a round trip has passed since marks and losses were last judged.
  bool epoch_over(Instant now) const { return now >= epoch_end_; }
  /// Whether blocks that are found lost now may have been granted before the pace last went down
  /// for losses.
  bool losses_are_old(Instant now) const { return now < old_losses_until_; }
  /// Lowers the pace or lets it recover, by what the epoch showed. The window over an unknown link
  /// grows only while no job is lossy.
  void end_epoch(const PathSigns& signs, Instant now);
  /// The receive ring is nearly full: halves the pace for a round trip.
  void on_pressure(Instant now);
  /// A larger window would have allowed another grant.
  void on_full() { was_full_ = true; }

  /// The pace as a part of 0.99 of the link's rate.
  double pace() const { return pace_; }
  bool pressed(Instant now) const { return now < pressed_until_; }
  Instant pressed_until() const { return pressed_until_; }

 private:
  bool link_is_known() const { return limits_.link_bits_per_second > 0; }
  double link_bytes(Duration time) const;  // bytes that the link carries in `time`
  Duration cost(double wire_bytes, Instant now) const;
  Duration max_burst(Instant now) const;

  Limits limits_;
  bool measured_ = false;
  Duration min_round_trip_;        // RTT0
  Duration round_trip_;            // RTTc
  double unknown_link_scale_ = 1;  // factor on the first window over an unknown link
  double pace_ = 1;
  double step_;  // the next step of the pace upwards
  bool slowed_by_losses_ = false;
  Instant old_losses_until_ = Instant::from_ns(INT64_MIN / 4);
  Instant free_at_ = Instant::from_ns(INT64_MIN / 4);
  Instant pressed_until_ = Instant::from_ns(INT64_MIN / 4);

  Instant epoch_end_;
  bool was_full_ = false;  // in this epoch
};

}  // namespace gradplane::grants
