// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/awareness/link_estimate.h"

#include <algorithm>
#include <cmath>

namespace gradplane::awareness {

static_assert(sizeof(LinkEstimate) <= 1024, "a node has one for each other node");

namespace {

bool is_clearly_more(std::uint64_t a, std::uint64_t b) {
  return a * 100 > b * (100 + kAgreePercent);
}

bool is_odd(std::uint64_t train, std::uint64_t estimate) {
  const auto [less, more] = std::minmax(train, estimate);
  return more * 100 > less * (100 + kOddPercent);
}

}  // namespace

double freshness(Duration age) {
  if (age > kSampleLifetime) return 0;
  return std::exp2(-std::max(age, Duration{}).to_seconds() / kSampleHalfLife.to_seconds());
}

void RateSamples::add(Instant now, std::uint64_t bits_per_second, bool sure) {
  if (count_ > 0) {
    Sample& last = samples_[(count_ - 1) % kRateSamples];
    if (now - last.begin < kSamplePeriod) {
      if (last.sure && !sure) return;
      const std::uint64_t before = last.sure == sure ? last.rate : 0;
      last.rate = std::max(before, bits_per_second);
      last.newest = now;
      last.sure = sure;
      return;
    }
  }
  samples_[count_ % kRateSamples] = {
      .begin = now, .newest = now, .rate = bits_per_second, .sure = sure};
  ++count_;
  if (has_become_slower()) keep_newest(kSlowerSamples);
}

bool RateSamples::has_become_slower() const {
  if (count_ <= kSlowerSamples) return false;
  std::uint64_t least = newest(0).rate;
  std::uint64_t most = least;
  for (std::size_t i = 1; i < kSlowerSamples; ++i) {
    least = std::min(least, newest(i).rate);
    most = std::max(most, newest(i).rate);
  }
  if (is_clearly_more(most, least)) return false;
  if (newest(0).begin - newest(kSlowerSamples - 1).begin < kSlowerTime) return false;
  for (std::size_t i = kSlowerSamples; i < std::min(count_, kRateSamples); ++i) {
    if (is_clearly_more(newest(i).rate, most)) return true;
  }
  return false;
}

void RateSamples::keep_newest(std::size_t count) {
  std::array<Sample, kRateSamples> kept{};
  for (std::size_t i = 0; i < count; ++i) kept[count - 1 - i] = newest(i);
  samples_ = kept;
  count_ = count;
}

RateEstimate RateSamples::estimate(Instant now) const {
  std::array<std::uint64_t, kRateSamples> rates{};  // in order
  std::size_t fresh = 0;
  const std::size_t kept = std::min(count_, kRateSamples);
  for (std::size_t i = 0; i < kept; ++i) {
    if (now - samples_[i].newest > kSampleLifetime) continue;
    std::size_t place = fresh++;
    for (; place > 0 && rates[place - 1] > samples_[i].rate; --place)
      rates[place] = rates[place - 1];
    rates[place] = samples_[i].rate;
  }
  if (fresh == 0) return {};
  RateEstimate estimate{.bits_per_second =
                            rates[std::min(fresh - 1, fresh * kRatePercentile / 100)]};
  double evidence = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    const Duration age = now - samples_[i].newest;
    const std::uint64_t far = std::max(samples_[i].rate, estimate.bits_per_second) -
                              std::min(samples_[i].rate, estimate.bits_per_second);
    if (far * 100 > estimate.bits_per_second * kAgreePercent || age > kSampleLifetime) continue;
    evidence += freshness(age);
    estimate.age = std::min(estimate.age, age);
  }
  estimate.confidence = std::min(1.0, evidence / kEnoughSamples);
  return estimate;
}

void LossSamples::age_until(Instant now) {
  const double left = freshness(now - aged_at_);
  sent_ *= left;
  lost_ *= left;
  aged_at_ = now;
}

void LossSamples::add(Instant now, const LossCount& count) {
  age_until(now);
  sent_ += static_cast<double>(count.sent);
  lost_ += static_cast<double>(count.lost);
  newest_ = now;
  known_ = true;
}

LossEstimate LossSamples::estimate(Instant now) const {
  if (!known_ || now - newest_ > kSampleLifetime || sent_ <= 0) return {};
  return {.share = lost_ / sent_,
          .confidence = std::min(1.0, sent_ * freshness(now - aged_at_) / kEnoughPackets),
          .age = now - newest_};
}

void LinkEstimate::on_measured(Instant now, const Measured& measured) {
  if (measured.train > 0) {
    const RateEstimate before = trains_.estimate(now);
    if (before.bits_per_second == 0 || !is_odd(measured.train, before.bits_per_second)) {
      odd_since_.reset();
    } else if (!odd_since_) {
      odd_since_ = now;
    }
    trains_.add(now, measured.train, !measured.is_short);
    newest_train_ = now;
    is_slow_ = meter_.is_slow(measured.train);
    bounds_.clear();
  }
  if (measured.bound == 0) return;
  is_slow_ = is_slow_ && meter_.is_slow(measured.bound);
  bounds_.add(now, measured.bound);
}

void LinkEstimate::on_round_trip(Instant now, Duration rtt) {
  if (!has_rtt_ || now - rtt_newest_ > kSampleLifetime) rtt_ = WindowedMin(kSampleLifetime / 2);
  rtt_.add(rtt, now);
  rtt_newest_ = now;
  has_rtt_ = true;
}

/// If a link has carried clearly more than its trains say, it has become faster since, or other
/// traffic slowed the trains down.
RateEstimate LinkEstimate::rate(Instant now) const {
  RateEstimate bound = bounds_.estimate(now);
  RateEstimate trains = trains_.estimate(now);
  if (is_clearly_more(bound.bits_per_second, trains.bits_per_second)) {
    bound.is_lower_bound = true;
    return bound;
  }
  trains.bits_per_second = std::max(trains.bits_per_second, bound.bits_per_second);
  return trains;
}

RttEstimate LinkEstimate::round_trip(Instant now) const {
  if (!has_rtt_ || now - rtt_newest_ > kSampleLifetime) return {};
  const Duration age = now - rtt_newest_;
  return {.rtt = rtt_.value(), .confidence = freshness(age), .age = age};
}

}  // namespace gradplane::awareness
