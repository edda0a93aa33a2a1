// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
};

}  // namespace gradplane::shim
