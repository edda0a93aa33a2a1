// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/core/threshold.h"

#include <algorithm>
#include <span>

namespace gradplane::core {
namespace {

Duration median(std::span<Duration> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void CompletionThreshold::add(Duration completion) {
  newer_ = std::min(newer_, completion);
  if (++in_newer_ < kWindowRounds) return;
  older_ = newer_;
  newer_ = Duration::max();
  in_newer_ = 0;
}

std::optional<Duration> CompletionThreshold::value() const {
  const Duration smallest = std::min(older_, newer_);
  if (smallest == Duration::max()) return std::nullopt;
  return smallest;
}

void DeadlineSlack::add(Duration excess) {
  samples_[next_] = std::max(excess, Duration{});
  next_ = (next_ + 1) % kSamples;
  count_ = std::min(count_ + 1, kSamples);
  if (count_ < kLeastSamples) return;
  std::array<Duration, kSamples> sorted = samples_;
  const std::span<Duration> values(sorted.data(), count_);
  const Duration middle = median(values);
  for (Duration& value : values) value = value > middle ? value - middle : middle - value;
  value_ = std::max(kLeast, middle + median(values) * kDeviations);
}

}  // namespace gradplane::core
