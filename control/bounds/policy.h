// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "control/bounds/rules.h"
#include "dataplane/api/bounds.h"

/// Works out a bound for each tensor from the operator's Rules and from what a job's ranks say of
/// their buckets. Pure functions; the control thread calls them.
namespace gradplane::bounds {

/// How a job cuts its buckets.
struct Sizes {
  std::size_t block_bytes = 0;
  std::size_t round_bytes = 0;
};

/// Blocks of a bucket that hold elements of one of its tensors.
std::uint32_t blocks_of(const api::BoundedTensor& tensor, ElementType type,
                        std::size_t block_bytes);

/// The bounds of all buckets of a job that are known so far, in the order of `tables`. `tables`
/// give the names and places of tensors; their own bounds are ignored. Patterns decide before
/// kinds, kinds before the preset. Integer buckets are exact. A bound that is less than one of the
/// tensor's blocks becomes 0 (kTooSmall). With Preset::kAuto a bound begins at 0 (kLearned): see
/// learn.h. Tensors of fp32 get the wire type of the first pattern that matches.
std::vector<api::BucketBounds> resolve(const Rules& rules, const Sizes& sizes,
                                       std::span<const api::BucketBounds> tables);

/// For a log line: "plot: 161 tensors in 5 buckets, 12 exact, 19.8 % of all elements".
std::string summary(const Rules& rules, std::span<const api::BucketBounds> tables);

/// A warning that names the patterns that fit no tensor; empty if there are none.
std::string unused_patterns(const Rules& rules, std::span<const api::BucketBounds> tables);

}  // namespace gradplane::bounds
