// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/aggregate/threshold.h"

#include <algorithm>
#include <span>

namespace gradplane::aggregate {
namespace {

Duration median(std::span<Duration> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void CompletionThreshold::add(Duration completion) {
  samples_[next_] = completion;
  next_ = (next_ + 1) % kWindowRounds;
  count_ = std::min(count_ + 1, kWindowRounds);
  std::array<Duration, kWindowRounds> sorted = samples_;
  value_ = median({sorted.data(), count_});
}

std::optional<Duration> CompletionThreshold::value() const {
  if (count_ == 0) return std::nullopt;
  return value_;
}

void DeadlineSlack::add(Duration excess) {
  samples_[next_] = std::max(excess, Duration{});
  next_ = (next_ + 1) % kSamples;
  count_ = std::min(count_ + 1, kSamples);
  if (count_ < kMinSamples) return;
  std::array<Duration, kSamples> sorted = samples_;
  const std::span<Duration> values(sorted.data(), count_);
  const Duration middle = median(values);
  for (Duration& value : values) value = value > middle ? value - middle : middle - value;
  value_ = std::max(kMin, middle + median(values) * kDeviations);
}

}  // namespace gradplane::aggregate
