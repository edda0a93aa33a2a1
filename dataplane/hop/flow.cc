// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/hop/flow.h"

#include <algorithm>
#include <utility>

#include "dataplane/base/assert.h"
#include "dataplane/congestion/factory.h"
#include "dataplane/hop/block_receiver.h"

namespace gradplane::hop {
namespace {

constexpr Duration kInitialProbeTimeout = Duration::ms(20);
constexpr Duration kMinProbeTimeout = Duration::ms(5);
static_assert(kMaxAckDelay < kMinProbeTimeout, "an ack that waits is no lost ack");
static_assert(kMaxAckDelay <= congestion::kAckHolding);
static_assert(kMaxSteadyAckDelay < congestion::kPacedPatience, "acks that wait stop no paced flow");
constexpr Duration kMaxProbeTimeout = Duration::ms(500);
constexpr Duration kMinReorderWindow = Duration::us(200);
/// The minimum burst. A slow flow needs no more than this to make up for a sleep of the poll loop.
/// If many flows begin together, their bursts meet in the peer's queue and stay there as long as
/// all of them send at their full shares.
constexpr std::size_t kMinBurstBlocks = 2;
constexpr Duration kMeterSpan = Duration::seconds(1);
/// The least rate, however slow a controller wants to be.
constexpr std::uint64_t kMinBlocksPerSecond = 1;
/// A flow that its controller makes this slow forgets the shortest round trip.
constexpr std::uint64_t kNearlyStopped = 4;  // blocks per second
static_assert(kNearlyStopped > kMinBlocksPerSecond, "a flow at its least rate forgets, too");

std::size_t burst_bytes(std::uint64_t rate, std::size_t block_wire_bytes) {
  const auto by_time = static_cast<std::size_t>(rate / 8 / 1000) *
                       static_cast<std::size_t>(kPacerBurst.count_ns() / 1000000);
  return std::max(by_time, kMinBurstBlocks * block_wire_bytes);
}

}  // namespace

void RateMeter::on_sent(Instant now, std::size_t bytes) {
  const Duration elapsed = now - begin_;
  if (elapsed >= kMeterSpan) {
    const bool had_a_rest = elapsed >= kMeterSpan * 2;
    bytes_before_ = had_a_rest ? 0 : bytes_;
    begin_ = had_a_rest ? now : begin_ + kMeterSpan;
    bytes_ = 0;
  }
  bytes_ += bytes;
}

std::uint64_t RateMeter::bits_per_second(Instant now) const {
  const auto bits_in = [&](Instant begin, std::uint64_t bytes) {
    const Duration over = now - begin - kMeterSpan;  // this part of the second is too long ago
    const double left = 1 - std::max(over, Duration{}).to_seconds() / kMeterSpan.to_seconds();
    return std::max(left, 0.0) * static_cast<double>(bytes) * 8;
  };
  const double bits = bits_in(begin_, bytes_) + bits_in(begin_ - kMeterSpan, bytes_before_);
  return static_cast<std::uint64_t>(bits / kMeterSpan.to_seconds());
}

Flow::Flow(Limits limits)
    : link_bits_per_second_(limits.rate_bits_per_second),
      link_(limits.rate_bits_per_second,
            burst_bytes(limits.rate_bits_per_second, limits.block_wire_bytes)),
      pacer_(0, 0),
      block_wire_bytes_(limits.block_wire_bytes),
      controller_(congestion::make_controller(limits.congestion,
                                              {.link_bits_per_second = limits.rate_bits_per_second,
                                               .block_wire_bytes = limits.block_wire_bytes})) {
  follow_controller(Instant());
}

void Flow::set_link_rate(Instant now, std::uint64_t rate_bits_per_second) {
  link_bits_per_second_ = rate_bits_per_second;
  link_.set_link_rate(now, rate_bits_per_second,
                      burst_bytes(rate_bits_per_second, block_wire_bytes_));
  controller_->set_link_rate(rate_bits_per_second);
  follow_controller(now);
}

void Flow::follow_controller(Instant now) {
  const congestion::Decision decision = controller_->decide(now);
  window_ = std::max(1U, static_cast<std::uint32_t>(decision.window_blocks));
  std::uint64_t pace = decision.pacing_bits_per_second;
  // An idle flow has no event that would shorten a pause, so the rate has a minimum.
  if (pace > 0) pace = std::max(pace, kMinBlocksPerSecond * block_wire_bytes_ * 8);
  if (pace == controller_pace_) return;
  controller_pace_ = pace;
  // A window below one block leaves no room for a burst.
  const bool spaced = decision.window_blocks < 1;
  pacer_.set_rate(now, pace, spaced ? 0 : burst_bytes(pace, block_wire_bytes_));
}

std::uint64_t Flow::allowed_bits_per_second() const {
  std::uint64_t allowed = 0;
  const auto bound = [&allowed](std::uint64_t rate) {
    if (rate > 0) allowed = allowed == 0 ? rate : std::min(allowed, rate);
  };
  bound(link_bits_per_second_);
  bound(controller_pace_);
  if (smoothed_ > Duration{}) {
    const double bits = static_cast<double>(window_) * static_cast<double>(block_wire_bytes_) * 8;
    bound(static_cast<std::uint64_t>(bits / smoothed_.to_seconds()));
  }
  return allowed;
}

Instant Flow::next_send() const {
  if (!has_room()) return Instant::never();
  return probe_due_ ? link_.next_send() : std::max(link_.next_send(), pacer_.next_send());
}

void Flow::on_sent(Instant now, std::size_t wire_bytes, bool retransmission) {
  const std::uint32_t before = in_flight_++;
  const bool is_probe = std::exchange(probe_due_, false);
  ++counts_.sent;
  counts_.retransmitted += retransmission ? 1 : 0;
  if (std::exchange(has_rested_, false)) link_.begin(now);
  link_.on_sent(now, wire_bytes);
  meter_.on_sent(now, wire_bytes);
  controller_->on_sent(now, static_cast<std::uint32_t>(wire_bytes), before);
  follow_controller(now);
  // A probe did not wait for pacing, so it is not charged: after an outage its debt would keep a
  // slow flow waiting.
  if (!is_probe) pacer_.on_sent(now, wire_bytes);
}

void Flow::on_copy_sent(Instant now, std::size_t wire_bytes) {
  ++counts_.sent;
  ++counts_.retransmitted;
  link_.on_sent(now, wire_bytes);
  meter_.on_sent(now, wire_bytes);
  controller_->on_sent(now, static_cast<std::uint32_t>(wire_bytes), in_flight_);
  follow_controller(now);
  pacer_.on_sent(now, wire_bytes);
}

void Flow::on_acked(Instant now, std::uint32_t blocks, std::uint32_t marked) {
  GP_ASSERT(blocks <= in_flight_);
  controller_->on_ack({.now = now,
                       .acked_blocks = blocks,
                       .in_flight_blocks = in_flight_,
                       .marked_blocks = marked,
                       .app_limited = delivered_ < app_limited_until_,
                       .rtt = {},
                       .smoothed_rtt = smoothed_,
                       .min_rtt = min_rtt_.value(),
                       .queueing = queueing()});
  in_flight_ -= blocks;
  delivered_ += blocks;
  follow_controller(now);
}

void Flow::note_sounding(Instant now) {
  // Packets that were sent after the sounding before may still be unanswered.
  const bool is_first = sounding_.left == sounding_.blocks;
  if (is_first && now - sounding_to_ > smoothed_) sounding_from_ = now;
  sounding_to_ = now;
  sounding_is_open_ = true;
}

/// Packets that were sent before this answer came may have waited behind the sounding; those that
/// are sent from now on do not.
void Flow::note_answered(Instant now, Instant sent) {
  if (sounding_.is_on() || !sounding_is_open_ || sent + kClockStep < sounding_to_) return;
  sounding_is_open_ = false;
  sounding_to_ = now;
}

bool Flow::is_worth_sounding(Instant now) const {
  const auto sounding_bits =
      static_cast<double>(awareness::kSoundingBlocks * block_wire_bytes_ * 8);
  const double most_bits =
      static_cast<double>(meter_.bits_per_second(now)) * awareness::kMinTrainTime.to_seconds();
  return has_rtt_ && !sounding_is_open_ && most_bits <= sounding_bits;
}

void Flow::on_rtt(Instant now, Duration sample) {
  const Duration rtt = std::min(sample, kMaxRtt);
  latest_ = rtt;
  if (!has_rtt_) {
    has_rtt_ = true;
    smoothed_ = rtt;
    variance_ = rtt / 2;
  } else {
    const Duration error = rtt > smoothed_ ? rtt - smoothed_ : smoothed_ - rtt;
    variance_ = (variance_ * 3 + error) / 4;
    smoothed_ = (smoothed_ * 7 + rtt) / 8;
  }
  if (has_nearly_stopped() && now - forgot_at_ > kMinRttLifetime) {
    forgot_at_ = now;
    forget_shortest();
  }
  min_rtt_.add(rtt, now);
  controller_->on_ack({.now = now,
                       .acked_blocks = 0,
                       .in_flight_blocks = in_flight_,
                       .rtt = rtt,
                       .smoothed_rtt = smoothed_,
                       .min_rtt = min_rtt_.value(),
                       .queueing = queueing()});
  follow_controller(now);
}

void Flow::on_forward_delay(Instant now, std::uint32_t delay_us) {
  const auto from_origin = [&] {
    return Duration::us(static_cast<std::int32_t>(delay_us - forward_origin_us_));
  };
  // No packet waits longer than the longest round trip. If one seems to, one of the clocks has been
  // set.
  const bool is_known = queueing_ && from_origin() - min_forward_.value() <= kMaxRtt &&
                        min_forward_.value() - from_origin() <= kMaxRtt;
  if (!is_known) {
    forward_origin_us_ = delay_us;
    min_forward_ = WindowedMin(kMinRttLifetime);
    queueing_ = Duration();
  }
  min_forward_.add(from_origin(), now);
  queueing_ = (*queueing_ * 7 + (from_origin() - min_forward_.value())) / 8;
}

void Flow::forget_way() {
  has_rtt_ = false;
  latest_ = smoothed_ = variance_ = {};
  forget_shortest();
}

/// Whether the controller has reduced the flow again and again for its delay, which has not become
/// shorter. The path has become longer, or others fill it, and the flow would stay this slow until
/// the shortest round trip expires.
bool Flow::has_nearly_stopped() const {
  return controller_pace_ > 0 && controller_pace_ <= kNearlyStopped * block_wire_bytes_ * 8 &&
         controller_->stats().reason == congestion::Reason::kDelay;
}

void Flow::forget_shortest() {
  min_rtt_ = WindowedMin(kMinRttLifetime);
  queueing_.reset();  // so the next delay is the first one
}

void Flow::on_silence(Instant now) {
  // The probe waits behind the sounding.
  if (sounding_is_open_ && now - sounding_to_ < kMaxProbeTimeout) return;
  controller_->on_loss({.now = now,
                        .why = congestion::LossEvent::Why::kSilence,
                        .lost_blocks = 0,
                        .newest_sent = {},
                        .smoothed_rtt = smoothed_});
  follow_controller(now);
}

void Flow::on_lost(Instant now, std::uint32_t blocks, Instant newest_sent) {
  GP_ASSERT(blocks <= in_flight_);
  if (!is_of_sounding(newest_sent)) {
    controller_->on_loss({.now = now,
                          .why = congestion::LossEvent::Why::kGap,
                          .lost_blocks = blocks,
                          .newest_sent = newest_sent,
                          .smoothed_rtt = smoothed_});
  }
  in_flight_ -= blocks;
  counts_.suspected_lost += blocks;
  follow_controller(now);
}

void Flow::on_tick(Instant now) {
  if (now < controller_->next_tick()) return;
  controller_->on_tick(now);
  follow_controller(now);
}

void Flow::on_forgotten(std::uint32_t blocks) {
  GP_ASSERT(blocks <= in_flight_);
  in_flight_ -= blocks;
}

Duration Flow::probe_timeout() const {
  if (!has_rtt_) return kInitialProbeTimeout;
  return std::clamp(smoothed_ + variance_ * 4 + kMaxAckDelay, kMinProbeTimeout, kMaxProbeTimeout);
}

/// A clock that drifts also looks like a queue, but the round trip does not grow with it.
std::optional<Duration> Flow::queueing() const {
  if (!queueing_) return std::nullopt;
  return std::min(*queueing_, smoothed_ - min_rtt_.value());
}

bool Flow::is_overtaken(Instant now, std::uint32_t sent_us) const {
  // The clock in packets wraps, so an echo that came half an hour ago looks later than a block that
  // is sent now.
  if (!has_rtt_ || now - echo_at_ > kMaxRtt) return false;
  const auto later_us = static_cast<std::int32_t>(newest_echo_us_ - sent_us);
  return later_us > 0 && Duration::us(later_us) > overtaking_time();
}

Duration Flow::overtaking_time() const {
  return reorder_window() + kMaxAckDelay;
}

Duration Flow::reorder_window() const {
  return std::max(smoothed_ / 4, kMinReorderWindow);
}

}  // namespace gradplane::hop
