// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "dataplane/base/time.h"

namespace gradplane::aggregate {

/// LTP's loss tolerance threshold LT of one source and bucket (Chen et al., IWQoS 2023): the time
/// after its first block in which a source that loses nothing is done. LTP takes the minimum of all
/// times ever seen. That can never grow again, so a bucket that once had the link to itself always
/// has too little time later. This class takes the median of the last rounds. If the path is known
/// to have changed, the owner begins with a fresh object.
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

/// The time that a round may take beyond its threshold. It follows from how much longer recent
/// rounds took: median + kDeviations x the median absolute deviation, so a few outliers do not move
/// it.
class DeadlineSlack {
 public:
  static constexpr std::size_t kSamples = 32;
  static constexpr std::size_t kMinSamples = 8;
  static constexpr int kDeviations = 4;
  /// The value until there are samples: LTP's constant for a datacenter.
  static constexpr Duration kInitial = Duration::ms(30);
  /// The minimum. A smaller slack would be within the noise of the scheduler.
  static constexpr Duration kMin = Duration::ms(5);

  void add(Duration excess);
  Duration value() const { return value_; }

 private:
  std::array<Duration, kSamples> samples_{};
  std::size_t next_ = 0;
  std::size_t count_ = 0;
  Duration value_ = kInitial;
};

}  // namespace gradplane::aggregate
