// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/congestion/bbr.h"

namespace gradplane::congestion {
namespace {

// Draft, sections 4.2.1 and 4.3: 2 / ln 2, its inverse, and the gains of the probing cycle.
constexpr double kHighGain = 2.885;
constexpr double kWindowGain = 2;
constexpr double kProbeMore = 0.25;
constexpr double kProbeLess = 0.75;
constexpr std::size_t kCycle = 8;
// Section 4.3.2.2: the pipe is full when three rounds have not raised the rate by a quarter.
constexpr double kFullGrowth = 1.25;
constexpr int kFullRounds = 3;
// Sections 4.1.2 and 4.3.5: how long a round trip counts, and how it is measured anew.
constexpr Duration kRttLifetime = Duration::seconds(10);
constexpr Duration kProbeRttTime = Duration::ms(200);
constexpr double kMinBbrWindow = 4;
constexpr double kFirstWindow = 10;

}  // namespace

double Bbr::bottleneck_rate() const {
  return *std::max_element(rates_.begin(), rates_.end());
}

void Bbr::on_sent(Instant now, std::uint32_t /*wire_bytes*/, std::uint32_t in_flight_blocks) {
  // A pause does not mean a slow network, so a round begins when there is something to send again.
  if (in_flight_blocks == 0) begin_round(now);
  ++round_sent_;
}

/// Section 4.1.2.3. The minimum is forgotten only when it has been measured anew without a queue of
/// this flow: after a pause, or after draining the queue for that purpose.
void Bbr::measure_round_trip(const AckEvent& event) {
  if (event.rtt == Duration()) return;
  const bool first = rtprop_ == Duration();
  const bool expired = event.now > rtprop_at_ + kRttLifetime;
  const bool anew = expired && (state_ == State::kProbeRtt || pipe_was_empty_);
  pipe_was_empty_ = false;
  if (!first && !anew && event.rtt > rtprop_) return;
  rtprop_ = event.rtt;
  rtprop_at_ = event.now;
}

void Bbr::note_rate(double blocks_per_second) {
  rates_[next_rate_] = blocks_per_second;
  next_rate_ = (next_rate_ + 1) % kRateRounds;
}

/// Section 4.1.1: the rate is what was delivered in the round, but no more than what was sent,
/// because acks may come bundled. An application-limited round counts only if its rate is higher
/// than the known one.
void Bbr::end_round(Instant now, Duration elapsed) {
  const double send_rate = static_cast<double>(round_sent_) / elapsed.to_seconds();
  const double delivery_rate = static_cast<double>(round_acked_) / elapsed.to_seconds();
  const double sent = std::max(send_rate, previous_send_rate_);
  const double rate = sent > 0 ? std::min(delivery_rate, sent) : delivery_rate;
  previous_send_rate_ = send_rate;
  const bool counts = !round_is_app_limited_ || rate > bottleneck_rate();
  if (counts && rate > 0) note_rate(rate);
  if (state_ == State::kStartup && counts) {
    full_rounds_ = rate >= full_rate_ * kFullGrowth ? 0 : full_rounds_ + 1;
    full_rate_ = std::max(full_rate_, rate);
    if (full_rounds_ >= kFullRounds) {
      state_ = State::kDrain;
      reactions_.set_reason(Reason::kPath);
    }
  }
  round_start_ = now;
  round_acked_ = round_sent_ = 0;
  round_is_app_limited_ = false;
}

void Bbr::begin_round(Instant now) {
  in_round_ = pipe_was_empty_ = true;
  round_start_ = now;
  round_acked_ = round_sent_ = 0;
  round_is_app_limited_ = false;
  previous_send_rate_ = 0;
}

void Bbr::count_round(const AckEvent& event) {
  if (!in_round_ || event.acked_blocks == 0) return;
  round_is_app_limited_ = round_is_app_limited_ || event.app_limited;
  // Blocks of an ack that comes at the moment in which a round begins were delivered before.
  if (event.now > round_start_) round_acked_ += event.acked_blocks;
  const Duration elapsed = event.now - round_start_;
  const bool drained = event.in_flight_blocks <= event.acked_blocks;
  // A shorter round would only measure how acks are bundled.
  const Duration least = drained ? rtprop_ : rtprop_ + kAckHolding;
  if (elapsed > Duration() && elapsed >= least) end_round(event.now, elapsed);
  in_round_ = in_round_ && !drained;
}

/// Section 4.3: drain, probe, and measure the round trip if its minimum is old.
void Bbr::advance(const AckEvent& event) {
  const Instant now = event.now;
  const std::uint32_t left = event.in_flight_blocks - event.acked_blocks;
  if (state_ == State::kDrain && (left == 0 || left <= path_blocks() + held_blocks())) {
    state_ = State::kProbe;
    cycle_ = 2;
    state_until_ = now + rtprop_ + kAckHolding;
  } else if (state_ == State::kProbe && now >= state_until_) {
    cycle_ = (cycle_ + 1) % kCycle;
    state_until_ = now + rtprop_ + kAckHolding;
  } else if (state_ == State::kProbeRtt && now >= state_until_) {
    rtprop_at_ = now;
    state_ = full_rounds_ >= kFullRounds ? State::kProbe : State::kStartup;
    cycle_ = 2;
    state_until_ = now + rtprop_ + kAckHolding;
    reactions_.set_reason(Reason::kPath);
  }
  if (state_ != State::kProbeRtt && rtprop_ > Duration() && now > rtprop_at_ + kRttLifetime) {
    state_ = State::kProbeRtt;
    state_until_ = now + std::max(kProbeRttTime, rtprop_);
    reactions_.set_reason(Reason::kDelay);
  }
}

void Bbr::on_ack(const AckEvent& event) {
  measure_round_trip(event);
  if (event.acked_blocks > 0) silent_ = false;
  count_round(event);
  advance(event);
}

void Bbr::on_loss(const LossEvent& event) {
  if (event.why != LossEvent::Why::kSilence || !reactions_.may_react(event.now)) return;
  silent_ = true;
  reactions_.reacted(event.now, event.smoothed_rtt, Reason::kSilence);
}

double Bbr::pacing_gain() const {
  if (state_ == State::kStartup) return kHighGain;
  if (state_ == State::kDrain) return 1 / kHighGain;
  if (state_ == State::kProbeRtt || cycle_ > 1) return 1;
  return cycle_ == 0 ? 1 + kProbeMore * gain_ : kProbeLess;
}

Decision Bbr::decide(Instant /*now*/) const {
  const double rate = bottleneck_rate();
  if (rate <= 0 || rtprop_ == Duration()) {
    return {.window_blocks = silent_ ? kMinBbrWindow : kFirstWindow, .pacing_bits_per_second = 0};
  }
  const bool starting = state_ == State::kStartup || state_ == State::kDrain;
  const double path = (starting ? kHighGain : kWindowGain) * path_blocks();
  double window = std::clamp(path + held_blocks(), kMinBbrWindow, kMaxWindow);
  if (silent_ || state_ == State::kProbeRtt) window = kMinBbrWindow;
  // Single blocks, each acked late, could not show that the path carries more.
  const double least = kMinBbrWindow / (rtprop_ + kAckHolding).to_seconds();
  const double pace = std::max(pacing_gain() * rate, least);
  return {.window_blocks = window,
          .pacing_bits_per_second = pacing_of(path_.bits_per_second(pace))};
}

}  // namespace gradplane::congestion
