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

Accumulator::Accumulator(std::size_t capacity_blocks, std::size_t block_bytes,
                         std::size_t host_words)
    : stride_bytes_(block_bytes * kMaxWidening),
      host_words_(host_words),
      memory_(std::make_unique<std::byte[]>(capacity_blocks * stride_bytes_)),
      contributors_(capacity_blocks),
      awaited_(capacity_blocks),
      hosts_(capacity_blocks * host_words) {}

void Accumulator::open(const Geometry& geometry, BlockRange range, std::uint16_t sources) {
  GP_ASSERT(range.size() <= awaited_.size());
  geometry_ = geometry;
  range_ = range;
  // What one rank alone contributes stays as it is, whatever its bits mean.
  kernels_ = all_contribute(geometry.operation) ? &reduce::kernels_for(geometry.type)
                                                : &reduce::copying_kernels_for(geometry.type);
  std::fill_n(contributors_.begin(), range.size(), std::uint16_t{0});
  std::fill_n(awaited_.begin(), range.size(), sources);
  std::fill_n(hosts_.begin(), range.size() * host_words_, 0);
}

void Accumulator::await(BlockRange blocks, std::uint16_t sources) {
  std::fill_n(awaited_.begin() + (blocks.begin - range_.begin), blocks.size(), sources);
}

bool Accumulator::add(std::uint32_t block, std::span<const std::byte> wire_bytes,
                      std::uint16_t contributors, HostSet from) {
  const std::size_t i = block - range_.begin;
  GP_ASSERT(range_.contains(block) && awaited_[i] > 0);
  GP_ASSERT(from.size() == host_words_);
  if (contributors > 0) {
    GP_ASSERT(wire_bytes.size() == geometry_.bytes_in(block));
    const auto add_bytes = contributors_[i] == 0 ? kernels_->set : kernels_->accumulate;
    add_bytes(memory_.get() + offset(block), wire_bytes.data(), geometry_.elements_in(block));
    contributors_[i] = static_cast<std::uint16_t>(contributors_[i] + contributors);
    for (std::size_t w = 0; w < host_words_; ++w) hosts_[i * host_words_ + w] |= from[w];
  }
  return --awaited_[i] == 0;
}

std::span<const std::byte> Accumulator::seal(std::uint32_t block, double factor) {
  std::byte* sum = memory_.get() + offset(block);
  const std::size_t elements = geometry_.elements_in(block);
  if (contributors(block) == 0) {
    std::memset(sum, 0, elements * accumulator_bytes(geometry_.type));
  } else if (factor != 1) {
    reduce::scale(geometry_.type, sum, factor, elements);
  }
  if (accumulator_bytes(geometry_.type) != element_bytes(geometry_.type)) {
    alignas(64) std::byte rounded[kMaxBlockBytes];
    kernels_->finish(rounded, sum, elements);
    std::memcpy(sum, rounded, geometry_.bytes_in(block));
  }
  return sealed(block);
}

void Accumulator::replace(std::uint32_t block, std::span<const std::byte> wire_bytes,
                          std::uint16_t contributors, HostSet from) {
  GP_ASSERT(range_.contains(block) && wire_bytes.size() == geometry_.bytes_in(block));
  const std::size_t i = block - range_.begin;
  std::memcpy(memory_.get() + offset(block), wire_bytes.data(), wire_bytes.size());
  contributors_[i] = contributors;
  std::copy(from.begin(), from.end(),
            hosts_.begin() + static_cast<std::ptrdiff_t>(i * host_words_));
}

}  // namespace gradplane::aggregate
