// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/api/bounds.h"
#include "dataplane/base/time.h"
#include "dataplane/model/loss_bounds.h"
#include "tests/sim/coding.h"

namespace gradplane::sim {

/// A value such as NaN or infinity that a trainer contributes instead of its own.
struct Poison {
  std::uint32_t round = 0;
  std::uint32_t rank = 0;
  std::uint32_t element = 0;
  double value = 0;
};

/// When a table of bounds reaches a host. A host and bucket without an entry have theirs at the
/// start.
struct Installation {
  std::size_t member = 0;
  std::uint32_t bucket = 0;
  Duration after;  // Duration::max(): never
};

/// A new bound that takes effect on all hosts at once, as if it had been learned.
struct BoundChange {
  Duration after;
  std::uint32_t bucket = 0;
  std::size_t tensor = 0;
  float bound = 0;
};

/// What a job may lose, and how it compensates for it. Without buckets every round is exact.
struct Tolerance {
  /// Bucket ids are 1, 2, ... in this order.
  std::vector<api::BucketBounds> buckets;
  Compensation compensation = Compensation::kRescale;
  float floor = 0.5F;
  std::uint32_t strict_rounds = 0;
  std::optional<Duration> slack;
  Duration absent_after;
  std::vector<Installation> installations;
  std::vector<BoundChange> changes;  // in the order of their times
  /// Rank 0 describes the buckets, and the session brings the bounds to each host some time later.
  bool session_brings_tables = false;
  /// A rank may submit a bucket again before its last round with it is done.
  bool overlap = false;
  /// The number of last rounds, which ranks submit when all others are done, the network is healed
  /// and every bound is 0. They show what was still kept as a residual.
  std::size_t closing_rounds = 0;
  Coding::Layout layout = Coding::Layout::kEveryElement;
  std::vector<Poison> poison;
  /// Buckets of fp32 may have wire types with visible rounding errors. RoundingChecker then defines
  /// and checks the contributions, and Coding does not.
  bool rounds_off = false;
  /// Contributions are small enough for bf16, and tensors of fp32 get a random wire type that
  /// represents them exactly.
  bool narrow = false;

  /// Buckets of integers and buckets without tensors are exact, so no rank describes them.
  static bool is_described(const api::BucketBounds& bucket) {
    return is_floating(bucket.type) && !bucket.tensors.empty();
  }
  const api::BucketBounds& bucket(std::uint32_t id) const { return buckets[id - 1]; }
  /// The type whose integers a bucket of this type has: the narrowest of its possible wire types.
  ElementType coded_as(ElementType type) const {
    return narrow && type == ElementType::kFloat32 ? ElementType::kBfloat16 : type;
  }
};

}  // namespace gradplane::sim
