// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/grants/grant_window.h"

#include <algorithm>

namespace gradplane::grants {
namespace {

/// A little under the link, so that no queue stands (UET's RCCC; docs/protocol.md, section 6).
constexpr double kPace = 0.99;
/// The window covers the loop as it is and half of it again.
constexpr double kLoops = 1.5;
/// Two, so that the sender of one block need not wait for the grant of the next.
constexpr std::uint32_t kLeastWindowBlocks = 2;
constexpr std::uint32_t kMostWindowBlocks = 1U << 16;
static_assert(kLeastWindowBlocks < kMostWindowBlocks);

/// Before anything was measured. A buffer that is known does without a guess.
constexpr Duration kFirstLoop = Duration::us(50);
constexpr Duration kLeastLoop = Duration::us(1);
/// A longer sample tells of a process that stood still, or of a lie.
constexpr Duration kMostLoop = Duration::seconds(1);
/// Loops are averaged over so many blocks.
constexpr std::int64_t kLoopBlocks = 32;
static_assert(kMostLoop.count_ns() < INT64_MAX / kLoopBlocks);

/// The first window where the link is unknown.
constexpr double kUnknownLinkBlocks = 64;
/// Of the buffer, for what needs no grant: the rest is for acks, grants and bursts, and for senders
/// that have not heard yet how little they may have on their way.
constexpr double kStandingBuffer = 0.75;
/// A learned buffer grows by an eighth per epoch that would have used more, and is cut by a third.
constexpr double kAllowanceGrowth = 1.125;
constexpr double kAllowanceCut = 0.7;
constexpr double kLeastAllowance = 1.0 / 16;
constexpr double kMostAllowance = 1024;
/// Delay that is no sign of a queue: naps, and a processor that others use too.
constexpr Duration kDelayAllowance = Duration::ms(4);

constexpr Duration kLeastEpoch = Duration::us(50);
/// UET: g > 0.3 slows by (g - 0.3) / 2, where g is the smoothed share of marked packets.
constexpr double kMarksTolerated = 0.3;
constexpr double kMarksSlope = 0.5;
/// Losing more than this is congestion, whatever else the network loses. Of so many blocks a
/// network that loses 5 % at random loses more than this once in a million times; after twice as
/// many the older ones count half.
constexpr double kHeavyLoss = 0.1;
constexpr std::uint32_t kLossBlocks = 512;
/// What was granted before the pace came down comes within a loop, and is missed a little later.
constexpr std::int64_t kOldLossLoops = 2;
constexpr double kMostCut = 0.5;
/// UET: back by 0.01, 0.02, 0.04 ... of the link while there is no sign of congestion.
constexpr double kFirstStep = 0.01;
constexpr double kMostStep = 0.08;
constexpr double kLeastPace = 0.01;
constexpr double kPressedPace = 0.5;
/// Devices are asked now and then what they missed: what was lost has passed, its cause has not.
constexpr Duration kLeastPressure = Duration::ms(20);

/// What a poll loop that napped makes up for.
constexpr Duration kMostBurst = Duration::ms(1);
/// Whatever else the link carried, grants go on so soon.
constexpr Duration kMostDebt = Duration::ms(10);
static_assert(kMostBurst < kMostDebt);

Duration from_seconds(double seconds) {
  return Duration::ns(static_cast<std::int64_t>(seconds * 1e9));
}

}  // namespace

double PathCounts::take_mark_cut() {
  if (arrived_ > 0) mark_share_ = (mark_share_ + static_cast<double>(marked_) / arrived_) / 2;
  known_for_losses_ += known();
  known_lost_ += lost_;
  if (known_for_losses_ >= 2 * kLossBlocks) {
    known_for_losses_ /= 2;
    known_lost_ /= 2;
  }
  arrived_ = marked_ = lost_ = 0;
  return mark_share_ > kMarksTolerated ? kMarksSlope * (mark_share_ - kMarksTolerated) : 0;
}

bool PathCounts::tells_losses() const {
  return known_for_losses_ >= kLossBlocks || known_lost_ > kHeavyLoss * kLossBlocks;
}

double PathCounts::loss_cut() const {
  if (!tells_losses()) return 0;
  const double share = static_cast<double>(known_lost_) / known_for_losses_;
  return share > kHeavyLoss ? std::min(share, kMostCut) : 0;
}

void LoopTime::add(Duration sample, Instant now) {
  const Duration loop = std::clamp(sample, kLeastLoop, kMostLoop);
  least_.add(loop, now);
  smoothed_ = known_ ? (smoothed_ * 7 + loop) / 8 : loop;
  known_ = true;
}

GrantWindow::GrantWindow(Limits limits)
    : limits_(limits),
      least_loop_(limits.buffer_bytes > 0 ? Duration{} : kFirstLoop),
      loop_(kFirstLoop),
      step_(kFirstStep) {}

double GrantWindow::link_bytes(Duration time) const {
  return static_cast<double>(limits_.link_bits_per_second) / 8 * time.to_seconds();
}

double GrantWindow::buffer_bytes() const {
  if (limits_.buffer_bytes > 0) return static_cast<double>(limits_.buffer_bytes);
  return allowance_ * (kLoops - 1) * link_bytes(least_loop_);
}

double GrantWindow::window_bytes() const {
  if (limits_.link_bits_per_second == 0) {
    return kUnknownLinkBlocks * allowance_ * static_cast<double>(limits_.block_wire_bytes);
  }
  return std::min(kLoops * link_bytes(loop_), buffer_bytes() + link_bytes(least_loop_));
}

std::uint32_t GrantWindow::blocks(Instant now) const {
  const bool halved = limits_.link_bits_per_second == 0 && pressed(now);
  const double window =
      window_bytes() * (halved ? kPressedPace : 1) / static_cast<double>(limits_.block_wire_bytes);
  return static_cast<std::uint32_t>(
      std::clamp<double>(window, kLeastWindowBlocks, kMostWindowBlocks));
}

std::uint32_t GrantWindow::most_blocks(Duration least_loop, Instant now) const {
  double bytes = limits_.link_bits_per_second == 0
                     ? window_bytes()
                     : kStandingBuffer * buffer_bytes() + link_bytes(least_loop);
  if (pressed(now)) bytes *= kPressedPace;
  const double blocks = bytes / static_cast<double>(limits_.block_wire_bytes);
  return static_cast<std::uint32_t>(std::clamp<double>(blocks, 1, kMostWindowBlocks));
}

/// W / N, for what more there is would only wait in the buffer; and no more than B / (N - 1): what
/// N senders send at once comes N times as fast as the downlink takes it, so that all but one
/// sender's part meets in the buffer.
std::uint32_t GrantWindow::unscheduled_blocks(std::size_t senders) const {
  const double n = static_cast<double>(std::max<std::size_t>(senders, 1));
  double each = window_bytes() / n;
  if (limits_.link_bits_per_second > 0 && n > 1) each = std::min(each, buffer_bytes() / (n - 1));
  const double blocks = each / static_cast<double>(limits_.block_wire_bytes);
  return static_cast<std::uint32_t>(std::clamp<double>(blocks, 1, kMostWindowBlocks));
}

Duration GrantWindow::drain_time() const {
  if (limits_.link_bits_per_second == 0) return loop_;
  return from_seconds(window_bytes() * 8 / static_cast<double>(limits_.link_bits_per_second));
}

Duration GrantWindow::cost(double wire_bytes, Instant now) const {
  const double rate = static_cast<double>(limits_.link_bits_per_second) * kPace * pace_ *
                      (pressed(now) ? kPressedPace : 1);
  return from_seconds(wire_bytes * 8 / rate);
}

/// A poll loop that naps makes up for it, by at most a quarter of a loop.
Duration GrantWindow::burst(Instant now) const {
  const auto batch = static_cast<double>(limits_.block_wire_bytes * kGrantBatch);
  return std::max(std::min(loop_ / 4, kMostBurst), cost(batch, now));
}

void GrantWindow::on_granted(std::uint32_t granted, Instant now) {
  if (limits_.link_bits_per_second == 0) return;
  const auto bytes = static_cast<double>(granted * limits_.block_wire_bytes);
  free_at_ = std::max(free_at_, now - burst(now)) + cost(bytes, now);
}

void GrantWindow::on_granted_came(std::size_t wire_bytes) {
  if (limits_.link_bits_per_second == 0 || wire_bytes >= limits_.block_wire_bytes) return;
  const double rate = static_cast<double>(limits_.link_bits_per_second) * kPace;
  free_at_ = free_at_ -
             from_seconds(static_cast<double>(limits_.block_wire_bytes - wire_bytes) * 8 / rate);
}

void GrantWindow::on_other(std::size_t wire_bytes, Instant now) {
  if (limits_.link_bits_per_second == 0 || free_at_ > now + kMostDebt) return;
  const auto bytes =
      static_cast<double>(std::min(wire_bytes, limits_.block_wire_bytes * kGrantBatch));
  free_at_ = std::max(free_at_, now - burst(now)) + cost(bytes, now);
}

void GrantWindow::on_loop(const LoopTime& loop) {
  if (!measured_) {
    measured_ = true;
    least_loop_ = loop.least();
    loop_ = loop.smoothed();
    return;
  }
  least_loop_ = mean_of_blocks(least_loop_, loop.least());
  loop_ = mean_of_blocks(loop_, loop.smoothed());
}

Duration GrantWindow::mean_of_blocks(Duration mean, Duration sample) {
  return (mean * (kLoopBlocks - 1) + sample) / kLoopBlocks;
}

void GrantWindow::on_pressure(Instant now) {
  if (!pressed(now)) pressed_until_ = now + std::max(loop_, kLeastPressure);
}

void GrantWindow::end_epoch(const PathSigns& signs, Instant now) {
  const double cut = std::max(signs.mark_cut, signs.loss_cut);
  if (cut > 0) {
    if (signs.loss_cut > 0) {
      slowed_by_losses_ = true;
      old_losses_until_ = now + loop_ * kOldLossLoops;
    }
    pace_ = std::max(pace_ * (1 - cut), kLeastPace);
    step_ = kFirstStep;
    allowance_ = std::max(allowance_ * kAllowanceCut, kLeastAllowance);
  } else if (!slowed_by_losses_ || signs.tells_losses) {
    pace_ = std::min(pace_ + step_, 1.0);
    step_ = std::min(step_ * 2, kMostStep);
    slowed_by_losses_ = slowed_by_losses_ && pace_ < 1;
    if (was_full_ && !signs.lossy && loop_ <= least_loop_ * 2 + kDelayAllowance) {
      allowance_ = std::min(allowance_ * kAllowanceGrowth, kMostAllowance);
    }
  }
  was_full_ = false;
  epoch_end_ = now + std::max(loop_, kLeastEpoch);
}

}  // namespace gradplane::grants
