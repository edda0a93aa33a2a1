// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/congestion/delay.h"

namespace gradplane::congestion {
namespace {

constexpr double kFirstWindow = 16;
constexpr double kMinDelayWindow = 2;
static_assert(kMinDelayWindow == kMinPacedWindow && kFirstWindow <= kMaxWindow);

/// Queueing that the target tolerates. It counts only the way to the peer. The flow can do nothing
/// about a queue on the way back, and two directions that wait for each other's acks would leave
/// both links idle.
constexpr Duration kQueueAllowance = Duration::ms(4);
/// For this long after a heavy loss or a silence, the window grows only by acks.
constexpr Duration kLossPatience = Duration::seconds(1);
constexpr double kMaxShrink = 0.5;
constexpr double kShrinkSlope = 0.8;
/// The window grows by one block in this time, or in a round trip if that is shorter. With one
/// block per round trip a flow over 75 ms and 100 Mbit/s would take a minute to fill its path
/// again.
constexpr Duration kGrowthTime = kQueueAllowance;
/// Losing this share of the blocks of one round trip is congestion, whatever the delay says.
constexpr double kHeavyLoss = 0.25;
constexpr std::uint32_t kHeavyLossMinBlocks = 8;

}  // namespace

Delay::Delay(Path path)
    : path_(path),
      paced_blocks_per_second_(
          path.blocks_per_second(static_cast<double>(path.link_bits_per_second))),
      blocks_(std::max(kFirstWindow, window_of_rate(paced_blocks_per_second_, Duration()))) {}

void Delay::set_link_rate(std::uint64_t bits_per_second) {
  path_.link_bits_per_second = bits_per_second;
  paced_blocks_per_second_ = path_.blocks_per_second(static_cast<double>(bits_per_second));
}

void Delay::on_ack(const AckEvent& event) {
  if (event.rtt > Duration()) measure(event);
  if (event.acked_blocks > 0) grow(event);
}

void Delay::measure(const AckEvent& event) {
  const bool first = !has_rtt_;
  has_rtt_ = true;
  rtt_ = event.smoothed_rtt;
  cover_path(event.now);
  const Duration queueing = event.queueing_or_both();
  if (first || queueing <= kQueueAllowance) return;
  const double excess = (queueing - kQueueAllowance).to_seconds() / rtt_.to_seconds();
  const double least = floor();
  if (blocks_ <= least) return;
  shrink(event.now, std::max({kMaxShrink, 1.0 - kShrinkSlope * excess, least / blocks_}),
         Reason::kDelay);
}

void Delay::grow(const AckEvent& event) {
  epoch_acked_ += event.acked_blocks;
  if (event.now >= epoch_end_) {
    epoch_end_ = event.now + rtt_;
    epoch_acked_ = epoch_lost_ = 0;
  }
  if (!window_is_used(event, blocks_) || !reactions_.may_react(event.now)) return;
  const double acked = event.acked_blocks;
  const double per_round_trip =
      std::max(1.0, event.min_rtt.to_seconds() / kGrowthTime.to_seconds());
  const double growth = slow_start_ ? acked : gain_ * per_round_trip * (acked / blocks_);
  blocks_ = std::min(blocks_ + growth, kMaxWindow);
  if (!slow_start_) reactions_.set_reason(Reason::kGrowth);
}

/// Raises the window to cover the path at its known rate, because a known rate needs no probing.
void Delay::cover_path(Instant now) {
  if (paced_blocks_per_second_ <= 0 || now < cover_again_at_ || blocks_ > floor()) return;
  blocks_ = floor();
  reactions_.set_reason(Reason::kPath);
}

void Delay::on_loss(const LossEvent& event) {
  if (event.why == LossEvent::Why::kSilence) {
    cover_again_at_ = event.now + kLossPatience;
    shrink(event.now, kMaxShrink, Reason::kSilence);
    return;
  }
  epoch_lost_ += event.lost_blocks;
  const std::uint32_t known = epoch_acked_ + epoch_lost_;
  if (epoch_lost_ >= kHeavyLossMinBlocks && epoch_lost_ > kHeavyLoss * known) {
    cover_again_at_ = event.now + kLossPatience;
    shrink(event.now, kMaxShrink, Reason::kLoss);
  }
}

void Delay::shrink(Instant now, double factor, Reason why) {
  if (!reactions_.may_react(now)) return;
  slow_start_ = false;
  blocks_ = std::max(blocks_ * factor, kMinDelayWindow);
  reactions_.reacted(now, rtt_, why);
}

Decision Delay::decide(Instant /*now*/) const {
  return {.window_blocks = blocks_, .pacing_bits_per_second = 0};
}

}  // namespace gradplane::congestion
