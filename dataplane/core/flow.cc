// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/core/flow.h"

#include <algorithm>

#include "dataplane/base/assert.h"
#include "dataplane/core/block_receiver.h"

namespace gradplane::core {
namespace {

constexpr double kInitialWindow = 16;
constexpr double kMinWindow = 2;
constexpr double kMaxWindow = 4096;
static_assert(kMinWindow <= kInitialWindow && kInitialWindow <= kMaxWindow);

/// Queueing that the target tolerates above the smallest round trip seen.
constexpr Duration kQueueAllowance = Duration::ms(4);
/// A paced flow cannot fill a queue by itself, so delay that it sees comes from elsewhere: a longer
/// path, or a busy processor. Its window always covers what its rate sends in a round trip as it is
/// now, and this much more; only loss takes it below that.
constexpr Duration kPacedPatience = Duration::ms(10);
/// For so long after a loss that was heavy the window grows by acks alone.
constexpr Duration kLossPatience = Duration::seconds(1);
constexpr double kMaxShrink = 0.5;
constexpr double kShrinkSlope = 0.8;
/// Losing this share of what was sent in one round trip is congestion whatever the delay says.
constexpr double kHeavyLoss = 0.25;
constexpr std::uint32_t kHeavyLossMinBlocks = 8;

constexpr Duration kInitialProbeTimeout = Duration::ms(20);
constexpr Duration kMinProbeTimeout = Duration::ms(5);
static_assert(kMaxAckDelay < kMinProbeTimeout, "an ack that waits is no lost ack");
constexpr Duration kMaxProbeTimeout = Duration::ms(500);
/// A longer sample tells of a process that stood still, or of a lie: it must not set the pace.
constexpr Duration kMaxRtt = Duration::seconds(1);
constexpr Duration kMinReorderWindow = Duration::us(200);
constexpr Duration kMinRttLifetime = Duration::seconds(10);
/// Pacing a little under the link keeps a queue from standing (protocol.md, section 6).
constexpr std::uint64_t kPacedPercent = 99;

std::size_t burst_bytes(std::uint64_t rate, std::size_t block_wire_bytes) {
  const auto by_time = static_cast<std::size_t>(rate / 8 / 1000) *
                       static_cast<std::size_t>(kPacerBurst.count_ns() / 1000000);
  return std::max(by_time, 4 * block_wire_bytes);
}

}  // namespace

Pacer::Pacer(std::uint64_t rate_bits_per_second, std::size_t burst)
    : rate_(rate_bits_per_second * kPacedPercent / 100),
      burst_(rate_ == 0 ? Duration{}
                        : Duration::ns(static_cast<std::int64_t>(static_cast<double>(burst) * 8e9 /
                                                                 static_cast<double>(rate_)))) {}

void Pacer::on_sent(Instant now, std::size_t bytes) {
  if (rate_ == 0) return;
  const auto cost = Duration::ns(
      static_cast<std::int64_t>(static_cast<double>(bytes) * 8e9 / static_cast<double>(rate_)));
  free_at_ = std::max(free_at_, now - burst_) + cost;
}

Flow::Flow(Limits limits)
    : pacer_(limits.rate_bits_per_second,
             burst_bytes(limits.rate_bits_per_second, limits.block_wire_bytes)),
      paced_blocks_per_second_(static_cast<double>(limits.rate_bits_per_second) / 8 /
                               static_cast<double>(limits.block_wire_bytes)) {
  window_ = std::max(kInitialWindow, delay_floor());
}

double Flow::delay_floor() const {
  return std::clamp(paced_blocks_per_second_ * (smoothed_ + kPacedPatience).to_seconds(),
                    kMinWindow, kMaxWindow);
}

Instant Flow::next_send() const {
  return has_room() ? pacer_.next_send() : Instant::never();
}

void Flow::on_sent(Instant now, std::size_t wire_bytes, bool retransmission) {
  ++in_flight_;
  probe_due_ = false;
  ++counts_.sent;
  counts_.retransmitted += retransmission ? 1 : 0;
  pacer_.on_sent(now, wire_bytes);
}

void Flow::on_copy_sent(Instant now, std::size_t wire_bytes) {
  ++counts_.sent;
  ++counts_.retransmitted;
  pacer_.on_sent(now, wire_bytes);
}

void Flow::on_acked(Instant now, std::uint32_t blocks) {
  GP_ASSERT(blocks <= in_flight_);
  const bool window_was_used = in_flight_ * 2 >= window();
  in_flight_ -= blocks;
  epoch_acked_ += blocks;
  if (now >= epoch_end_) {
    epoch_end_ = now + smoothed_;
    epoch_acked_ = epoch_lost_ = 0;
  }
  if (!window_was_used || now < shrink_again_at_) return;
  const double grown = slow_start_ ? static_cast<double>(blocks) : blocks / window_;
  window_ = std::min(window_ + grown, kMaxWindow);
}

void Flow::on_rtt(Instant now, Duration sample) {
  const Duration rtt = std::min(sample, kMaxRtt);
  if (!has_rtt_) {
    has_rtt_ = true;
    smoothed_ = rtt;
    variance_ = rtt / 2;
    min_rtt_ = next_min_rtt_ = rtt;
    min_rtt_until_ = now + kMinRttLifetime;
    cover_path(now);
    return;
  }
  const Duration error = rtt > smoothed_ ? rtt - smoothed_ : smoothed_ - rtt;
  variance_ = (variance_ * 3 + error) / 4;
  smoothed_ = (smoothed_ * 7 + rtt) / 8;
  // A windowed minimum: it can grow again when the path does.
  min_rtt_ = std::min(min_rtt_, rtt);
  next_min_rtt_ = std::min(next_min_rtt_, rtt);
  if (now >= min_rtt_until_) {
    min_rtt_ = next_min_rtt_;
    next_min_rtt_ = rtt;
    min_rtt_until_ = now + kMinRttLifetime;
  }
  cover_path(now);
  const Duration target = min_rtt_ + kQueueAllowance;
  if (smoothed_ <= target) return;
  const double excess = (smoothed_ - target).to_seconds() / smoothed_.to_seconds();
  const double floor = delay_floor();
  if (window_ <= floor) return;
  shrink(now, std::max({kMaxShrink, 1.0 - kShrinkSlope * excess, floor / window_}));
}

/// No need to feel for a rate that is known.
void Flow::cover_path(Instant now) {
  if (paced_blocks_per_second_ > 0 && now >= cover_again_at_) {
    window_ = std::max(window_, delay_floor());
  }
}

void Flow::on_silence(Instant now) {
  cover_again_at_ = now + kLossPatience;
  shrink(now, kMaxShrink);
}

void Flow::on_lost(Instant now, std::uint32_t blocks) {
  GP_ASSERT(blocks <= in_flight_);
  in_flight_ -= blocks;
  epoch_lost_ += blocks;
  counts_.suspected_lost += blocks;
  const std::uint32_t known = epoch_acked_ + epoch_lost_;
  if (epoch_lost_ >= kHeavyLossMinBlocks && epoch_lost_ > kHeavyLoss * known) {
    cover_again_at_ = now + kLossPatience;
    shrink(now, kMaxShrink);
  }
}

void Flow::on_forgotten(std::uint32_t blocks) {
  GP_ASSERT(blocks <= in_flight_);
  in_flight_ -= blocks;
}

void Flow::shrink(Instant now, double factor) {
  if (now < shrink_again_at_) return;
  slow_start_ = false;
  window_ = std::max(window_ * factor, kMinWindow);
  shrink_again_at_ = now + std::max(smoothed_, Duration::us(100));
}

Duration Flow::probe_timeout() const {
  if (!has_rtt_) return kInitialProbeTimeout;
  return std::clamp(smoothed_ + variance_ * 4 + kMaxAckDelay, kMinProbeTimeout, kMaxProbeTimeout);
}

Duration Flow::reorder_window() const {
  return std::max(smoothed_ / 4, kMinReorderWindow);
}

}  // namespace gradplane::core
