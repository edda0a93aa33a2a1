// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "dataplane/model/element_type.h"

namespace gradplane {

/// A half-open range of block indices of one round.
struct BlockRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t size() const { return end - begin; }
  bool contains(std::uint32_t block) const { return block >= begin && block < end; }
};

/// What all nodes say alike of a round: how its bucket is cut into blocks, and which one it is. A
/// block never splits an element, so whatever is lost, what arrives is whole elements (LTP's Bubble
/// Filling, by construction).
struct Geometry {
  ElementType type = ElementType::kFloat32;
  std::uint32_t elements = 0;        // of the bucket
  std::uint32_t block_elements = 0;  // of every block but the last
  std::uint32_t blocks = 0;
  std::uint16_t bucket = 0;  // 0: none; every block is needed

  static Geometry of(ElementType type, std::uint32_t elements, std::size_t block_bytes,
                     std::uint16_t bucket = 0) {
    Geometry g;
    g.type = type;
    g.bucket = bucket;
    g.elements = elements;
    g.block_elements = static_cast<std::uint32_t>(block_bytes / element_bytes(type));
    g.blocks = (elements + g.block_elements - 1) / g.block_elements;
    return g;
  }

  std::uint32_t elements_in(std::uint32_t block) const {
    return std::min(block_elements, elements - block * block_elements);
  }
  std::size_t bytes_in(std::uint32_t block) const {
    return elements_in(block) * element_bytes(type);
  }
  /// Where a block begins in a trainer's buffer.
  std::size_t offset_bytes(std::uint32_t block) const {
    return std::size_t{block} * block_elements * element_bytes(type);
  }
  bool operator==(const Geometry&) const = default;
};

/// One tree's part of the weights of all trees: [begin, begin + weight) of total.
struct WeightShare {
  std::uint64_t begin = 0;
  std::uint64_t weight = 0;
};

/// The blocks of `round` that a tree carries. All nodes compute the same; the trees' ranges cover
/// every block once. The order of the trees rotates with the round, so that a bucket of fewer
/// blocks than trees does not always land on the same root. `first_begin` is the share's begin of
/// tree round % trees.
inline BlockRange blocks_of_tree(WeightShare share, std::uint64_t first_begin, std::uint64_t total,
                                 std::uint32_t blocks) {
  const std::uint64_t begin = (share.begin + total - first_begin) % total;
  const auto cut = [&](std::uint64_t weight) {
    return static_cast<std::uint32_t>(std::uint64_t{blocks} * weight / total);
  };
  return {cut(begin), cut(begin + share.weight)};
}

/// The most blocks that blocks_of_tree() can give a tree of this weight.
inline std::size_t max_blocks_of_tree(std::uint64_t weight, std::uint64_t total,
                                      std::size_t blocks) {
  return std::min<std::size_t>(blocks, blocks * weight / total + 1);
}

}  // namespace gradplane
