// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "dataplane/base/time.h"

namespace gradplane::aggregate {

/// LTP's loss tolerance threshold LT of one source and bucket (Chen et al., IWQoS 2023): how long
/// after its first block a source that loses nothing is done. LTP takes the smallest time ever
/// seen, so that it can never grow again, and a bucket that had the link to itself once is short of
/// time ever after; this is the median of the last rounds. Who knows that the path has changed
/// begins with a fresh one.
class CompletionThreshold {
 public:
  static constexpr std::size_t kWindowRounds = 16;

  void add(Duration completion);
  /// Nothing before the first sample.
  std::optional<Duration> value() const;

 private:
  std::array<Duration, kWindowRounds> samples_{};
  std::size_t next_ = 0;
  std::size_t count_ = 0;
  Duration value_;
};

/// How much longer than its threshold a round may take: from how much longer recent ones took,
/// median + kDeviations x the median absolute deviation, so that a few outliers do not move it.
class DeadlineSlack {
 public:
  static constexpr std::size_t kSamples = 32;
  static constexpr std::size_t kLeastSamples = 8;
  static constexpr int kDeviations = 4;
  /// Until there are samples; LTP's constant for a datacenter.
  static constexpr Duration kInitial = Duration::ms(30);
  /// Below this a slack would be noise of the scheduler.
  static constexpr Duration kLeast = Duration::ms(5);

  void add(Duration excess);
  Duration value() const { return value_; }

 private:
  std::array<Duration, kSamples> samples_{};
  std::size_t next_ = 0;
  std::size_t count_ = 0;
  Duration value_ = kInitial;
};

}  // namespace gradplane::aggregate
