// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/group/exchange_schedule.h"

#include <algorithm>
#include <utility>

namespace gradplane::shim {

std::uint64_t ExchangeSchedule::begin_bucket(std::span<const void* const> parameters) {
  const std::lock_guard lock(mutex_);
  const bool came_before = std::any_of(parameters.begin(), parameters.end(),
                                       [&](const void* p) { return reduced_.contains(p); });
  if (passes_ == 0 || came_before) {
    ++passes_;
    reduced_.clear();
  }
  reduced_.insert(parameters.begin(), parameters.end());
  return passes_ - 1;
}

void ExchangeSchedule::end_bucket(const BucketEnd& end) {
  const std::lock_guard lock(mutex_);
  summed_ = summed_ || end.summed;
  if (!end.exchanged) return;
  apart_ = has_exchanged_ = true;
  average_every_ = end.average_every;
}

ExchangeSchedule::Due ExchangeSchedule::take_due() {
  const std::lock_guard lock(mutex_);
  const bool summed = std::exchange(summed_, false);
  if (!has_exchanged_) return Due::kNothing;
  const std::uint64_t since = passes_ - measured_at_;
  // Averages go on even if gradients are summed now: equal gradients would keep different replicas
  // different for ever, and optimizers' state from different gradients moves equal replicas apart.
  const bool average = (summed && apart_) || (average_every_ != 0 && since >= average_every_);
  const bool measure = apart_ && average_every_ == 0 && since >= kMeasureEvery;
  if (!average && !measure) return Due::kNothing;
  measured_at_ = passes_;
  if (!average) return Due::kMeasure;
  apart_ = false;
  return Due::kAverage;
}

std::uint64_t ExchangeSchedule::passes() const {
  const std::lock_guard lock(mutex_);
  return passes_;
}

}  // namespace gradplane::shim
