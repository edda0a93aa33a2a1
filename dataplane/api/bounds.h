// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/model/element_type.h"
#include "dataplane/model/loss_bounds.h"
#include "dataplane/model/wire_type.h"

namespace gradplane::api {

/// Where a tensor's bound comes from.
enum class BoundReason : std::uint8_t {
  kExact,     // nothing allows the tensor to lack blocks
  kPattern,   // gather.bounds
  kKind,      // gather.kinds
  kPreset,    // gather.preset
  kLearned,   // gather.preset: auto
  kTooSmall,  // the bound is less than one of its blocks
};

/// A tensor's place in a bucket, and the share (0..kMaxBound) of each rank's blocks of it that a
/// round may miss (PLOT, TNSM 2024).
struct BoundedTensor {
  std::string name;
  std::uint32_t offset_elements = 0;
  std::uint32_t elements = 0;
  float bound = 0;
  BoundReason why = BoundReason::kExact;
  std::string rule;                     // the pattern, kind or preset; shown to people
  WireType wire = WireType::kElements;  // the wire type of its blocks; only for fp32
};

/// The bounds of one bucket: what its rounds may lack. `tensors` are in the order of their offsets
/// and do not overlap; elements outside all tensors are exact.
struct BucketBounds {
  std::uint32_t bucket = 0;  // 1..kMaxBuckets
  ElementType type = ElementType::kFloat32;
  std::uint32_t elements = 0;
  std::vector<BoundedTensor> tensors;
};

}  // namespace gradplane::api
