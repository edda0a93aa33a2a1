// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trainer-shim/group/bucket_layout.h"
#include "trainer-shim/torch/originals.h"

namespace gradplane::shim {

/// The identities of parameters: addresses that stay the same while a parameter lives.
std::vector<const void*> identities(const Tensors& tensors);

/// The reducers of DDP, and the parameters in their buckets. Any thread.
class BucketNames {
 public:
  void add(const void* reducer, const Tensors& parameters, const ParameterNames& names);
  void remove(const void* reducer);

  /// The layout of a bucket, with DDP's names. It is the same object until the bucket changes.
  std::shared_ptr<const BucketLayout> layout(const void* reducer, c10d::GradBucket& bucket);

 private:
  struct Known {
    std::vector<const void*> parameters;  // identities, in the bucket's order
    std::shared_ptr<const BucketLayout> layout;
  };
  struct Reducer {
    std::unordered_map<const void*, std::string> names;  // by the parameter's identity
    std::map<std::size_t, Known> buckets;                // by the bucket's index
  };

  std::mutex mutex_;
  std::unordered_map<const void*, Reducer> reducers_;
  std::uint64_t last_key_ = 0;
};

/// The bucket for which DDP runs its communication hook in this thread just now.
struct GradientMark {
  const void* reducer = nullptr;
  c10d::GradBucket* bucket = nullptr;
  std::uint64_t pass = 0;  // number of the backward pass

  /// True if `tensor` is the whole buffer of the marked bucket.
  static bool matches(const at::Tensor& tensor);
  static GradientMark& current();
};

}  // namespace gradplane::shim
