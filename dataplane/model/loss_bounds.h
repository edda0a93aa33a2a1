// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/model/limits.h"

namespace gradplane {

/// What becomes of a block to which not all ranks have contributed (docs/loss-tolerance.md).
enum class Compensation : std::uint8_t {
  kZero,     // the sum of the contributions that came
  kRescale,  // that sum, times ranks / contributions
  kCarry,    // that sum; a sender adds what did not enter to its next gradient (error feedback)
};

/// The most buckets of a job; their ids are 1..kMaxBuckets. Bucket 0 means no bucket, so exact.
inline constexpr std::size_t kMaxBuckets = 4096;
inline constexpr std::size_t kMaxTensorsPerBucket = 16384;
/// The most bytes that the buckets of a job keep on one node for their next gradients. A bucket
/// that would need more is exact.
inline constexpr std::size_t kMaxResidualBytes = std::size_t{4} << 30;
/// The most bytes that a node keeps of other ranks' updates under bounded staleness, for all
/// buckets of a job.
inline constexpr std::size_t kMaxInboxBytes = std::size_t{8} << 30;
/// The largest share of a rank's blocks of a tensor that any bound lets a round miss.
inline constexpr float kMaxBound = 0.5F;
static_assert(kMaxBuckets <= 0xffff, "a bucket's id has 16 bits on the wire");

/// Repairs may take one part in this many of a transfer: of a round's packets, and of its time.
inline constexpr std::int64_t kRepairShare = 8;

}  // namespace gradplane
