// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/model/element_type.h"
#include "dataplane/model/loss_bounds.h"

namespace gradplane::shim {

struct TensorPlace {
  std::string name;  // DDP's name of the parameter, or param.<index>
  std::uint64_t offset_elements = 0;
  std::uint64_t elements = 0;
};

/// The tensors in a DDP gradient bucket. `key` identifies the bucket of its reducer for the life of
/// the process. `version` grows when DDP rebuilds its buckets.
struct BucketLayout {
  std::uint64_t key = 0;
  std::uint64_t version = 0;
  std::vector<TensorPlace> tensors;
  bool is_sum = false;  // made by layout_of_sum()
};

/// Shorter sums with a name of the user's are exact: losses, counts and norms.
inline constexpr std::uint64_t kMinElementsOfNamedSum = 1024;
/// The most ids of a session for slices of sums outside DDP, so that DDP's buckets have some.
inline constexpr std::size_t kMaxBucketsOfSums = kMaxBuckets / 2;

/// The layout of a sum of `elements` elements of `type` that is no bucket of DDP, but holds
/// gradients. It is one tensor with this name. All sums of one length and type are one bucket.
std::shared_ptr<const BucketLayout> layout_of_sum(std::string name, std::uint64_t elements,
                                                  ElementType type);

}  // namespace gradplane::shim
