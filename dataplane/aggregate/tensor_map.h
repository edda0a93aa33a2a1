// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/base/bitmap.h"
#include "dataplane/model/geometry.h"
#include "dataplane/model/loss_bounds.h"
#include "dataplane/model/wire_type.h"

namespace gradplane::aggregate {

/// A tensor's place in a bucket, and the share of each rank's blocks that a round may miss.
struct TensorBound {
  std::uint32_t offset_elements = 0;
  std::uint32_t elements = 0;
  float bound = 0;
  bool is_learned = false;              // the bound will change
  WireType wire = WireType::kElements;  // only for fp32
};

/// The wire type of each block of a bucket, by block; empty if all blocks go as plain elements. A
/// block with several tensors has a wire type that serves all of them. A block with elements of no
/// tensor goes as plain elements.
std::vector<WireType> wire_types_of(const Geometry& geometry,
                                    const std::vector<TensorBound>& tensors);

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

  /// A wide tensor has enough blocks for some bound to let a round miss one of them. Wide tensors
  /// are numbered from 0 on in the order of the tensors. Every other tensor is exact under any
  /// bound.
  std::size_t wide_count() const { return wide_.size(); }
  std::size_t tensor_of_wide(std::size_t wide) const { return wide_[wide]; }
  /// Calls `f(wide)` for each wide tensor that has elements in `block`. There are at most two,
  /// because a wide tensor that begins and ends in one block would not be wide.
  template <typename F>
  void for_each_wide_in(std::uint32_t block, F f) const {
    for (std::size_t w = first_wide_[block]; w < wide_.size() && blocks_[wide_[w]].begin <= block;
         ++w) {
      f(w);
    }
  }
  /// Half-open range of the wide tensors that have elements in `range`.
  std::size_t first_wide_in(BlockRange range) const;
  std::size_t end_wide_in(BlockRange range) const;

  /// Whether no bound ever lets a round miss `block`: some of its elements belong to no tensor, or
  /// to one that is not wide.
  bool is_always_critical(std::uint32_t block) const { return always_critical_.test(block); }

  /// The number of blocks of the whole tensor that a round may miss of each rank (I4 in
  /// docs/protocol.md).
  std::uint32_t allowance(std::size_t tensor, float bound) const {
    return static_cast<std::uint32_t>(bound * static_cast<float>(blocks_[tensor].size()));
  }
  /// The part of the allowance for `range`. If ranges partition the bucket, the parts sum to the
  /// whole, so roots that share a tensor keep its bound without talking to each other.
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
  std::vector<BlockRange> blocks_;         // by tensor
  std::vector<std::uint32_t> first_;       // by block: the first tensor that ends in it or later
  std::vector<std::uint32_t> wide_;        // tensors, in order
  std::vector<std::uint32_t> first_wide_;  // by block: as first_, for wide tensors
  Bitmap always_critical_;                 // by block
};
static_assert(kMaxBound < 1,
              "a wide tensor has two blocks at least, so a block lies in two at most");

}  // namespace gradplane::aggregate
