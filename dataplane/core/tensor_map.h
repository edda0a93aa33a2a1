// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/core/geometry.h"

namespace gradplane::core {

/// A tensor's place in a bucket, and the share of each rank's blocks of it that a round may miss.
struct TensorBound {
  std::uint32_t offset_elements = 0;
  std::uint32_t elements = 0;
  float bound = 0;
  bool is_learned = false;  // the bound will change
};

/// Which blocks of a bucket hold elements of which tensors. Tensors are in the order of their
/// offsets and do not overlap, so those of one block have consecutive numbers.
class TensorMap {
 public:
  TensorMap(const Geometry& geometry, const std::vector<TensorBound>& tensors);

  std::size_t size() const { return blocks_.size(); }
  std::uint32_t block_count() const { return static_cast<std::uint32_t>(first_.size()); }
  BlockRange blocks(std::size_t tensor) const { return blocks_[tensor]; }

  /// Calls `f(tensor)` for each tensor that has elements in `block`.
  template <typename F>
  void for_each_in(std::uint32_t block, F f) const {
    for (std::size_t t = first_[block]; t < size() && blocks_[t].begin <= block; ++t) f(t);
  }
  /// Half-open range of the tensors that have elements in `range`.
  std::size_t first_in(BlockRange range) const;
  std::size_t end_in(BlockRange range) const;

  /// Whether every element of `block` belongs to some tensor.
  bool is_covered(std::uint32_t block) const { return covered_[block]; }

  /// How many of the whole tensor's blocks a round may miss of each rank: I4.
  std::uint32_t allowance(std::size_t tensor, float bound) const {
    return static_cast<std::uint32_t>(bound * static_cast<float>(blocks_[tensor].size()));
  }
  /// That part of the allowance that falls to `range`. Over ranges that cut the bucket up, the
  /// parts sum to the whole: roots that share a tensor need not talk to keep its bound.
  std::uint32_t allowance_in(std::size_t tensor, float bound, BlockRange range) const {
    const BlockRange own = blocks_[tensor];
    const std::uint64_t whole = allowance(tensor, bound);
    const auto before = [&](std::uint32_t block) {
      return whole * (std::clamp(block, own.begin, own.end) - own.begin) / own.size();
    };
    return static_cast<std::uint32_t>(before(range.end) - before(range.begin));
  }
  std::uint32_t blocks_in(std::size_t tensor, BlockRange range) const {
    const BlockRange own = blocks_[tensor];
    const std::uint32_t begin = std::max(own.begin, range.begin);
    return std::max(std::min(own.end, range.end), begin) - begin;
  }

 private:
  std::vector<BlockRange> blocks_;    // by tensor
  std::vector<std::uint32_t> first_;  // by block: the first tensor that ends in it or later
  std::vector<bool> covered_;         // by block
};

}  // namespace gradplane::core
