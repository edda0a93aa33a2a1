// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/aggregate/tensor_map.h"

#include "dataplane/base/assert.h"

namespace gradplane::aggregate {

std::vector<WireType> wire_types_of(const Geometry& geometry,
                                    const std::vector<TensorBound>& tensors) {
  const bool any = std::any_of(tensors.begin(), tensors.end(),
                               [](const TensorBound& t) { return t.wire != WireType::kElements; });
  if (!any || geometry.type != ElementType::kFloat32) return {};
  std::vector<WireType> types(geometry.blocks);
  std::vector<std::uint32_t> known(geometry.blocks);  // elements that belong to some tensor
  for (const TensorBound& t : tensors) {
    const std::uint32_t end = t.offset_elements + t.elements;
    for (std::uint32_t b = t.offset_elements / geometry.block_elements;
         b < geometry.blocks && b * geometry.block_elements < end; ++b) {
      const std::uint32_t begin = b * geometry.block_elements;
      types[b] = known[b] == 0 ? t.wire : shared_wire_type(types[b], t.wire);
      known[b] +=
          std::min(end, begin + geometry.elements_in(b)) - std::max(t.offset_elements, begin);
    }
  }
  for (std::uint32_t b = 0; b < geometry.blocks; ++b) {
    // A scale may take more than it saves.
    const bool saves =
        wire_bytes(types[b], geometry.type, geometry.elements_in(b)) < geometry.bytes_in(b);
    if (known[b] < geometry.elements_in(b) || !saves) types[b] = WireType::kElements;
  }
  return types;
}

TensorMap::TensorMap(const Geometry& geometry, const std::vector<TensorBound>& tensors)
    : first_(geometry.blocks), first_wide_(geometry.blocks), always_critical_(geometry.blocks) {
  always_critical_.reset(geometry.blocks);
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
    const auto tensor = static_cast<std::uint32_t>(blocks_.size() - 1);
    if (allowance(tensor, kMaxBound) > 0) {
      wide_.push_back(tensor);
    } else {
      always_critical_.set(blocks_.back().begin);
    }
  }
  std::uint32_t tensor = 0;
  std::uint32_t wide = 0;
  for (std::uint32_t b = 0; b < geometry.blocks; ++b) {
    while (tensor < blocks_.size() && blocks_[tensor].end <= b) ++tensor;
    first_[b] = tensor;
    while (wide < wide_.size() && blocks_[wide_[wide]].end <= b) ++wide;
    first_wide_[b] = wide;
    if (elements[b] < geometry.elements_in(b)) always_critical_.set(b);
  }
}

std::size_t TensorMap::first_wide_in(BlockRange range) const {
  return range.size() == 0 ? 0 : first_wide_[range.begin];
}

std::size_t TensorMap::end_wide_in(BlockRange range) const {
  if (range.size() == 0) return 0;
  const auto at = std::partition_point(wide_.begin(), wide_.end(), [&](std::uint32_t tensor) {
    return blocks_[tensor].begin < range.end;
  });
  return static_cast<std::size_t>(at - wide_.begin());
}

}  // namespace gradplane::aggregate
