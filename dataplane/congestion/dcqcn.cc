// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/congestion/dcqcn.h"

#include <cmath>

namespace gradplane::congestion {
namespace {

// DCQCN, section 3.1, as it was deployed: g, F and N. The timers of alpha and rate, 55 us, are a
// little longer than the least time between two notifications. Here that time is a round trip if a
// round trip is longer.
constexpr double kWeight = 1.0 / 256;
constexpr std::uint32_t kFastRecoveryRounds = 5;
constexpr Duration kNotificationPause = Duration::us(50);
constexpr double kTimerPerPause = 1.1;
// Published constants as parts of the link: R_AI is 40 Mbit/s of 40 Gbit/s, B is 10 MB, or 2 ms of
// the link. The hyper increase, which the paper takes from QCN, is ten additive increases.
constexpr double kAdditiveShare = 1.0 / 1000;
constexpr double kHyperShare = 10 * kAdditiveShare;
constexpr Duration kByteCounter = Duration::ms(2);

constexpr double kMinShare = 1.0 / 1000;
/// The line rate if the rate of the link is not known, in bits per second.
constexpr double kUnknownLine = 1e9;

double line_of(std::uint64_t link_bits_per_second) {
  return link_bits_per_second > 0 ? static_cast<double>(link_bits_per_second) : kUnknownLine;
}

/// The most timer rounds to catch up after an idle time: by then the rate is the line rate, and
/// alpha is almost 0.
constexpr std::int64_t kMaxCatchUp = 2000;

}  // namespace

Dcqcn::Dcqcn(Path path)
    : path_(path), line_(line_of(path.link_bits_per_second)), rate_(line_), target_(line_) {}

void Dcqcn::set_link_rate(std::uint64_t bits_per_second) {
  const bool is_at_line = rate_ >= line_;
  path_.link_bits_per_second = bits_per_second;
  line_ = line_of(bits_per_second);
  rate_ = is_at_line ? line_ : std::clamp(rate_, kMinShare * line_, line_);
  target_ = is_at_line ? line_ : std::clamp(target_, rate_, line_);
}

Duration Dcqcn::period() const {
  const Duration pause = std::max(kNotificationPause, rtt_);
  return Duration::ns(
      static_cast<std::int64_t>(static_cast<double>(pause.count_ns()) * kTimerPerPause));
}

void Dcqcn::on_tick(Instant now) {
  if (!limited_) return;
  if (now >= next_alpha_) {
    const std::int64_t late = (now - next_alpha_).count_ns() / period().count_ns();
    alpha_ *= std::pow(1 - kWeight, static_cast<double>(late + 1));  // equation 2
    next_alpha_ = now + period();
  }
  if (now < next_raise_) return;
  const std::int64_t late = (now - next_raise_).count_ns() / period().count_ns();
  for (std::int64_t n = 0; n <= std::min(late, kMaxCatchUp); ++n) {
    ++timer_rounds_;
    raise();
  }
  next_raise_ = now + period();
}

Instant Dcqcn::next_tick() const {
  return limited_ ? std::min(next_alpha_, next_raise_) : Instant::never();
}

/// Section 3.1, equations 3 and 4, and QCN's hyper increase once both counters exceed F.
void Dcqcn::raise() {
  if (std::min(timer_rounds_, byte_rounds_) > kFastRecoveryRounds) {
    const std::uint32_t step = std::min(timer_rounds_, byte_rounds_) - kFastRecoveryRounds;
    target_ += gain_ * step * kHyperShare * line_;
  } else if (std::max(timer_rounds_, byte_rounds_) > kFastRecoveryRounds) {
    target_ += gain_ * kAdditiveShare * line_;
  }
  target_ = std::min(target_, line_);
  rate_ = (rate_ + target_) / 2;
  reactions_.set_reason(Reason::kGrowth);
}

void Dcqcn::on_sent(Instant now, std::uint32_t wire_bytes, std::uint32_t /*in_flight_blocks*/) {
  on_tick(now);
  if (!limited_) return;
  bytes_ += wire_bytes;
  if (bytes_ < line_ / 8 * kByteCounter.to_seconds()) return;
  bytes_ = 0;
  ++byte_rounds_;
  raise();
}

/// Section 3.1, equation 1.
void Dcqcn::notify(Instant now, double alpha, Reason why) {
  if (!reactions_.may_react(now)) return;
  target_ = rate_;
  rate_ = std::max(rate_ * (1 - alpha / 2), kMinShare * line_);
  alpha_ = alpha_ * (1 - kWeight) + kWeight;
  limited_ = true;
  bytes_ = 0;
  timer_rounds_ = byte_rounds_ = 0;
  next_alpha_ = next_raise_ = now + period();
  reactions_.reacted(now, std::max(rtt_, kNotificationPause), why);
}

void Dcqcn::on_ack(const AckEvent& event) {
  if (event.smoothed_rtt > Duration()) rtt_ = event.smoothed_rtt;
  on_tick(event.now);
  if (event.marked_blocks > 0) notify(event.now, alpha_, Reason::kMark);
}

void Dcqcn::on_loss(const LossEvent& event) {
  on_tick(event.now);
  if (event.why == LossEvent::Why::kSilence) {
    notify(event.now, 1, Reason::kSilence);
  } else if (event.lost_blocks > 0 && reactions_.is_news(event)) {
    notify(event.now, alpha_, Reason::kLoss);
  }
}

Decision Dcqcn::decide(Instant /*now*/) const {
  return {.window_blocks = window_of_rate(path_.blocks_per_second(rate_), rtt_),
          .pacing_bits_per_second = pacing_of(rate_)};
}

}  // namespace gradplane::congestion
