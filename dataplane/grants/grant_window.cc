// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/grants/grant_window.h"

#include <algorithm>

namespace gradplane::grants {
namespace {

/// Slightly below the link's rate, so that no standing queue forms (as in UET's RCCC).
constexpr double kPace = 0.99;

/// RTTc until it is measured.
constexpr Duration kFirstRoundTrip = Duration::us(50);
constexpr Duration kMinRoundTrip = Duration::us(1);
/// A longer sample comes from a process that stood still, or from a false report.
constexpr Duration kMaxRoundTrip = Duration::seconds(1);
/// Round trips are averaged over this many blocks.
constexpr std::int64_t kRoundTripBlocks = 32;
static_assert(kMaxRoundTrip.count_ns() < INT64_MAX / kRoundTripBlocks);

/// The first window over a link of unknown rate.
constexpr double kUnknownLinkBlocks = 64;
/// That window grows by an eighth per epoch that used it up, and shrinks by three tenths.
constexpr double kScaleGrowth = 1.125;
constexpr double kScaleCut = 0.7;
constexpr double kMinScale = 1.0 / 16;
constexpr double kMaxScale = 1024;
/// Delay that does not indicate a queue: a poll loop sleeps, and other programs use the processor,
/// too.
constexpr Duration kDelayAllowance = Duration::ms(4);

/// The part of the buffer that data may fill. The rest is for acks, grants, bursts, and senders
/// that have not heard yet that they must share.
constexpr double kDataPartOfBuffer = 0.75;

constexpr Duration kMinEpoch = Duration::us(50);
/// UET: a smoothed share g > 0.3 of marked packets lowers the pace by (g - 0.3) / 2.
constexpr double kToleratedMarks = 0.3;
constexpr double kMarkSlope = 0.5;
/// Losing more than this is congestion, whatever else the network loses. Of kLossBlocks blocks, a
/// network that loses 5 % at random loses more than this once in a million times. After twice as
/// many blocks the older ones count half.
constexpr double kHeavyLoss = 0.1;
constexpr std::uint32_t kLossBlocks = 512;
/// Blocks that were granted before the pace went down arrive within a round trip, and are missed
/// slightly later.
constexpr std::int64_t kOldLossRoundTrips = 2;
constexpr double kMaxCut = 0.5;
/// UET: without signs of congestion the pace rises by 0.01, 0.02, 0.04 ... of the link.
constexpr double kFirstStep = 0.01;
constexpr double kMaxStep = 0.08;
constexpr double kMinPace = 0.01;
constexpr double kPressedPace = 0.5;
/// The device's count of missed packets is read only now and then. By then the loss is over, but
/// its cause is not.
constexpr Duration kMinPressure = Duration::ms(20);

/// A poll loop that sleeps makes up for at most this time, but always for this many blocks (UET's
/// credit is four packets).
constexpr Duration kMaxBurst = Duration::ms(1);
constexpr std::uint32_t kMinBurstBlocks = 4;
/// Grants resume after this time, however much other traffic the link carried.
constexpr Duration kMaxDebt = Duration::ms(10);
static_assert(kMaxBurst < kMaxDebt);

Duration from_seconds(double seconds) {
  return Duration::ns(static_cast<std::int64_t>(seconds * 1e9));
}

GrantWindow::Limits with_buffer(GrantWindow::Limits limits) {
  if (limits.buffer_bytes == 0) limits.buffer_bytes = GrantWindow::kAssumedBufferBytes;
  return limits;
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
  return mark_share_ > kToleratedMarks ? kMarkSlope * (mark_share_ - kToleratedMarks) : 0;
}

bool PathCounts::has_loss_verdict() const {
  return known_for_losses_ >= kLossBlocks || known_lost_ > kHeavyLoss * kLossBlocks;
}

double PathCounts::loss_cut() const {
  if (!has_loss_verdict()) return 0;
  const double share = static_cast<double>(known_lost_) / known_for_losses_;
  return share > kHeavyLoss ? std::min(share, kMaxCut) : 0;
}

void RoundTrip::add(Duration sample, Instant now) {
  const Duration bounded = std::clamp(sample, kMinRoundTrip, kMaxRoundTrip);
  min_.add(bounded, now);
  smoothed_ = known_ ? (smoothed_ * 7 + bounded) / 8 : bounded;
  known_ = true;
}

GrantWindow::GrantWindow(Limits limits)
    : limits_(with_buffer(limits)), round_trip_(kFirstRoundTrip), step_(kFirstStep) {}

double GrantWindow::link_bytes(Duration time) const {
  return static_cast<double>(limits_.link_bits_per_second) / 8 * time.to_seconds();
}

std::uint32_t GrantWindow::max_in_flight_blocks(Duration min_round_trip, Instant now) const {
  double blocks = kUnknownLinkBlocks * unknown_link_scale_;
  if (link_is_known()) {
    const double bytes =
        kDataPartOfBuffer * static_cast<double>(limits_.buffer_bytes) + link_bytes(min_round_trip);
    blocks = bytes / static_cast<double>(limits_.block_wire_bytes);
  }
  if (pressed(now)) blocks *= kPressedPace;
  return static_cast<std::uint32_t>(std::clamp<double>(blocks, 1, kMaxBlocks));
}

Duration GrantWindow::drain_time(std::uint32_t blocks) const {
  if (!link_is_known()) return round_trip_;
  const double bits = static_cast<double>(limits_.block_wire_bytes) * 8 * blocks;
  return from_seconds(bits / static_cast<double>(limits_.link_bits_per_second));
}

Duration GrantWindow::cost(double wire_bytes, Instant now) const {
  const double rate = static_cast<double>(limits_.link_bits_per_second) * kPace * pace_ *
                      (pressed(now) ? kPressedPace : 1);
  return from_seconds(wire_bytes * 8 / rate);
}

/// The burst with which a poll loop makes up for a sleep: at most a quarter of a round trip.
Duration GrantWindow::max_burst(Instant now) const {
  const auto blocks = static_cast<double>(limits_.block_wire_bytes * kMinBurstBlocks);
  return std::max(std::min(round_trip_ / 4, kMaxBurst), cost(blocks, now));
}

void GrantWindow::on_granted(std::uint32_t granted, Instant now) {
  if (!link_is_known()) return;
  const auto bytes = static_cast<double>(granted * limits_.block_wire_bytes);
  free_at_ = std::max(free_at_, now - max_burst(now)) + cost(bytes, now);
}

void GrantWindow::on_granted_arrived(std::size_t wire_bytes) {
  if (!link_is_known() || wire_bytes >= limits_.block_wire_bytes) return;
  const double rate = static_cast<double>(limits_.link_bits_per_second) * kPace;
  free_at_ = free_at_ -
             from_seconds(static_cast<double>(limits_.block_wire_bytes - wire_bytes) * 8 / rate);
}

void GrantWindow::on_other(std::size_t wire_bytes, Instant now) {
  if (!link_is_known() || free_at_ > now + kMaxDebt) return;
  const auto bytes =
      static_cast<double>(std::min(wire_bytes, limits_.block_wire_bytes * kMinBurstBlocks));
  free_at_ = std::max(free_at_, now - max_burst(now)) + cost(bytes, now);
}

void GrantWindow::on_round_trip(const RoundTrip& round_trip) {
  if (!measured_) {
    measured_ = true;
    min_round_trip_ = round_trip.min();
    round_trip_ = round_trip.smoothed();
    return;
  }
  min_round_trip_ = mean_over_blocks(min_round_trip_, round_trip.min());
  round_trip_ = mean_over_blocks(round_trip_, round_trip.smoothed());
}

Duration GrantWindow::mean_over_blocks(Duration mean, Duration sample) {
  return (mean * (kRoundTripBlocks - 1) + sample) / kRoundTripBlocks;
}

void GrantWindow::on_pressure(Instant now) {
  if (!pressed(now)) pressed_until_ = now + std::max(round_trip_, kMinPressure);
}

void GrantWindow::end_epoch(const PathSigns& signs, Instant now) {
  const double cut = std::max(signs.mark_cut, signs.loss_cut);
  if (cut > 0) {
    if (signs.loss_cut > 0) {
      slowed_by_losses_ = true;
      old_losses_until_ = now + round_trip_ * kOldLossRoundTrips;
    }
    pace_ = std::max(pace_ * (1 - cut), kMinPace);
    step_ = kFirstStep;
    unknown_link_scale_ = std::max(unknown_link_scale_ * kScaleCut, kMinScale);
  } else if (!slowed_by_losses_ || signs.has_loss_verdict) {
    pace_ = std::min(pace_ + step_, 1.0);
    step_ = std::min(step_ * 2, kMaxStep);
    slowed_by_losses_ = slowed_by_losses_ && pace_ < 1;
    if (was_full_ && !signs.lossy && round_trip_ <= min_round_trip_ * 2 + kDelayAllowance) {
      unknown_link_scale_ = std::min(unknown_link_scale_ * kScaleGrowth, kMaxScale);
    }
  }
  was_full_ = false;
  epoch_end_ = now + std::max(round_trip_, kMinEpoch);
}

}  // namespace gradplane::grants
