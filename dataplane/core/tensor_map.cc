// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/core/tensor_map.h"

#include "dataplane/base/assert.h"

namespace gradplane::core {

TensorMap::TensorMap(const Geometry& geometry, const std::vector<TensorBound>& tensors)
    : first_(geometry.blocks), covered_(geometry.blocks) {
  std::vector<std::uint32_t> elements(geometry.blocks);
  std::uint32_t end = 0;
  for (const TensorBound& t : tensors) {
    GP_ASSERT(t.elements > 0 && t.offset_elements >= end);
    end = t.offset_elements + t.elements;
    GP_ASSERT(end > t.offset_elements && end <= geometry.elements);
    blocks_.push_back(
        {t.offset_elements / geometry.block_elements, (end - 1) / geometry.block_elements + 1});
    for (std::uint32_t b = blocks_.back().begin; b < blocks_.back().end; ++b) {
      const std::uint32_t block_begin = b * geometry.block_elements;
      elements[b] += std::min(end, block_begin + geometry.elements_in(b)) -
                     std::max(t.offset_elements, block_begin);
    }
  }
  std::uint32_t tensor = 0;
  for (std::uint32_t b = 0; b < geometry.blocks; ++b) {
    while (tensor < blocks_.size() && blocks_[tensor].end <= b) ++tensor;
    first_[b] = tensor;
    covered_[b] = elements[b] == geometry.elements_in(b);
  }
}

std::size_t TensorMap::first_in(BlockRange range) const {
  return range.size() == 0 ? 0 : first_[range.begin];
}

std::size_t TensorMap::end_in(BlockRange range) const {
  if (range.size() == 0) return 0;
  const auto at = std::partition_point(
      blocks_.begin(), blocks_.end(), [&](const BlockRange& own) { return own.begin < range.end; });
  return static_cast<std::size_t>(at - blocks_.begin());
}

}  // namespace gradplane::core
