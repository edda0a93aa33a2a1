// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/model/limits.h"

namespace gradplane {

/// What becomes of a block that fewer than all ranks contributed to (docs/loss-tolerance.md).
enum class Compensation : std::uint8_t {
  kZero,     // the sum of those that came
  kRescale,  // that sum, times ranks / those that came
  kCarry,    // the sum; what did not enter goes into its sender's next gradient (error feedback)
};

/// Buckets of one job; their ids are 1..kMaxBuckets. Bucket 0 means: no bucket, so exact.
inline constexpr std::size_t kMaxBuckets = 4096;
inline constexpr std::size_t kMaxTensorsPerBucket = 16384;
/// What the buckets of one job may keep for their next gradients on one node. A bucket beyond it is
/// exact.
inline constexpr std::size_t kMaxResidualBytes = std::size_t{4} << 30;
/// What a node keeps of updates of other ranks, under bounded staleness, of all buckets of a job.
inline constexpr std::size_t kMaxInboxBytes = std::size_t{8} << 30;
/// The largest share of a rank's blocks of a tensor that any bound lets a round miss.
inline constexpr float kMaxBound = 0.5F;
static_assert(kMaxBuckets <= 0xffff, "a bucket's id has 16 bits on the wire");

/// Repairs may take one part in this many of a transfer: of the packets of a round, and of its
/// time.
inline constexpr std::int64_t kRepairShare = 8;

}  // namespace gradplane
