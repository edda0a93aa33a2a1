// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/aggregate/accumulator.h"

#include <cstring>

#include "dataplane/base/assert.h"
#include "dataplane/model/limits.h"
#include "dataplane/reduce/partial.h"

namespace gradplane::aggregate {
namespace {

/// Half precision is summed in twice its width.
constexpr std::size_t kMaxWidening =
    accumulator_bytes(ElementType::kFloat16) / element_bytes(ElementType::kFloat16);
static_assert(kMaxWidening == 2);

}  // namespace

Accumulator::Accumulator(std::size_t capacity_blocks, std::size_t block_bytes)
    : stride_bytes_(block_bytes * kMaxWidening),
      memory_(std::make_unique<std::byte[]>(capacity_blocks * stride_bytes_)),
      contributors_(capacity_blocks),
      awaited_(capacity_blocks) {}

void Accumulator::open(const Geometry& geometry, BlockRange range, std::uint16_t sources) {
  GP_ASSERT(range.size() <= awaited_.size());
  geometry_ = geometry;
  range_ = range;
  kernels_ = &reduce::kernels_for(geometry.type);
  for (std::size_t i = 0; i < range.size(); ++i) {
    contributors_[i] = 0;
    awaited_[i] = sources;
  }
}

bool Accumulator::add(std::uint32_t block, std::span<const std::byte> wire_bytes,
                      std::uint16_t contributors) {
  const std::size_t i = block - range_.begin;
  GP_ASSERT(range_.contains(block) && awaited_[i] > 0);
  GP_ASSERT(wire_bytes.size() == geometry_.bytes_in(block));
  const auto add_bytes = contributors_[i] == 0 ? kernels_->set : kernels_->accumulate;
  add_bytes(memory_.get() + offset(block), wire_bytes.data(), geometry_.elements_in(block));
  contributors_[i] = static_cast<std::uint16_t>(contributors_[i] + contributors);
  return --awaited_[i] == 0;
}

void Accumulator::end_partial(std::uint32_t block, double factor) {
  const std::size_t i = block - range_.begin;
  GP_ASSERT(range_.contains(block) && awaited_[i] > 0);
  awaited_[i] = 0;
  std::byte* sum = memory_.get() + offset(block);
  if (contributors_[i] == 0) {
    std::memset(sum, 0, geometry_.elements_in(block) * accumulator_bytes(geometry_.type));
  } else if (factor != 1) {
    reduce::scale(geometry_.type, sum, factor, geometry_.elements_in(block));
  }
}

std::span<const std::byte> Accumulator::seal(std::uint32_t block) {
  if (accumulator_bytes(geometry_.type) != element_bytes(geometry_.type)) {
    alignas(64) std::byte rounded[kMaxBlockBytes];
    kernels_->finish(rounded, memory_.get() + offset(block), geometry_.elements_in(block));
    std::memcpy(memory_.get() + offset(block), rounded, geometry_.bytes_in(block));
  }
  return sealed(block);
}

void Accumulator::replace(std::uint32_t block, std::span<const std::byte> wire_bytes,
                          std::uint16_t contributors) {
  GP_ASSERT(range_.contains(block) && wire_bytes.size() == geometry_.bytes_in(block));
  std::memcpy(memory_.get() + offset(block), wire_bytes.data(), wire_bytes.size());
  contributors_[block - range_.begin] = contributors;
}

}  // namespace gradplane::aggregate
