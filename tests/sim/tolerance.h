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

/// A number that a trainer contributes instead of its own: NaN, infinity.
struct Poison {
  std::uint32_t round = 0;
  std::uint32_t rank = 0;
  std::uint32_t element = 0;
  double value = 0;
};

/// When a table reaches a host. A pair without an entry: at the start.
struct Installation {
  std::size_t member = 0;
  std::uint32_t bucket = 0;
  Duration after;  // Duration::max(): never
};

/// A bound that has been learned anew, on every host at once.
struct BoundChange {
  Duration after;
  std::uint32_t bucket = 0;
  std::size_t tensor = 0;
  float bound = 0;
};

/// What a job may lose, and what becomes of it. Without buckets every round is exact.
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
  /// Rank 0 describes the buckets, and the session brings each host their bounds some time later.
  bool session_brings_tables = false;
  /// A rank may submit a bucket again before its last round with it is done.
  bool overlap = false;
  /// The last rounds are submitted when all others are done, the network has been healed and every
  /// bound is 0: they show what was still kept back.
  std::size_t closing_rounds = 0;
  Coding::Layout layout = Coding::Layout::kEveryElement;
  std::vector<Poison> poison;
  /// Buckets of fp32 may have wire types whose errors show: what ranks contribute and what holds is
  /// RoundingChecker's, and not Coding's.
  bool rounds_off = false;
  /// Numbers are as small as bf16 holds them, and tensors of fp32 are drawn with a wire type that
  /// holds them exactly.
  bool narrow = false;

  /// Buckets of whole numbers are exact, and so are those without tensors. Nobody describes them.
  static bool is_described(const api::BucketBounds& bucket) {
    return is_floating(bucket.type) && !bucket.tensors.empty();
  }
  const api::BucketBounds& bucket(std::uint32_t id) const { return buckets[id - 1]; }
  /// The type whose whole numbers a bucket of this type has: the narrowest in which it goes.
  ElementType coded_as(ElementType type) const {
    return narrow && type == ElementType::kFloat32 ? ElementType::kBfloat16 : type;
  }
};

}  // namespace gradplane::sim
