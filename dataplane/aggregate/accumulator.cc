// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/aggregate/accumulator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "dataplane/base/assert.h"
#include "dataplane/model/limits.h"
#include "dataplane/reduce/partial.h"
#include "dataplane/reduce/wire_codec.h"

namespace gradplane::aggregate {
namespace {

/// Half precision is summed in twice its width.
constexpr std::size_t kMaxWidening =
    accumulator_bytes(ElementType::kFloat16) / element_bytes(ElementType::kFloat16);
static_assert(kMaxWidening == 2);
/// An accumulator takes a multiple of this. So if a piece of memory for several begins at
/// a cache line, each of them does.
constexpr std::size_t kCacheLineBytes = 64;

}  // namespace

std::size_t Accumulator::memory_bytes(std::size_t capacity_blocks, std::size_t block_bytes) {
  const std::size_t bytes = capacity_blocks * block_bytes * kMaxWidening;
  return (bytes + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
}

Accumulator::Accumulator(std::size_t capacity_blocks, std::size_t block_bytes,
                         std::size_t host_words, std::pmr::memory_resource& memory)
    : block_bytes_(block_bytes),
      stride_bytes_(block_bytes * kMaxWidening),
      host_words_(host_words),
      memory_(memory_bytes(capacity_blocks, block_bytes), &memory),
      lasting_(capacity_blocks),
      wire_types_(capacity_blocks),
      contributors_(capacity_blocks),
      awaited_(capacity_blocks),
      hosts_(capacity_blocks * host_words) {}

void Accumulator::open(const Geometry& geometry, BlockRange range, std::uint16_t sources,
                       bool narrows) {
  GP_ASSERT(range.size() <= awaited_.size());
  geometry_ = geometry;
  range_ = range;
  // Adjacent sums need fewer pages and less cache.
  stride_bytes_ = block_bytes_ / element_bytes(geometry.type) * accumulator_bytes(geometry.type);
  narrow_at_ = 0;
  if (narrows) {
    narrow_at_ = stride_bytes_;
    stride_bytes_ = block_bytes_ * kMaxWidening;
  }
  // If only one rank contributes, its bytes are copied unchanged, whatever they mean.
  kernels_ = all_contribute(geometry.operation)
                 ? &reduce::kernels_for(geometry.type, geometry.reduction)
                 : &reduce::copying_kernels_for(geometry.type);
  std::fill_n(lasting_.begin(), range.size(), nullptr);
  std::fill_n(wire_types_.begin(), range.size(), WireType::kElements);
  std::fill_n(contributors_.begin(), range.size(), std::uint16_t{0});
  std::fill_n(awaited_.begin(), range.size(), sources);
  std::fill_n(hosts_.begin(), range.size() * host_words_, 0);
}

void Accumulator::await(BlockRange blocks, std::uint16_t sources) {
  std::fill_n(awaited_.begin() + (blocks.begin - range_.begin), blocks.size(), sources);
}

bool Accumulator::add(std::uint32_t block, std::span<const std::byte> wire_bytes,
                      std::uint16_t contributors, HostSet from, WireType wire) {
  const std::size_t i = block - range_.begin;
  GP_ASSERT(range_.contains(block) && awaited_[i] > 0);
  if (contributors == 0) return --awaited_[i] == 0;
  GP_ASSERT(wire_bytes.size() == bytes_in(block, wire));
  take_in(block, wire_bytes.data(), wire);
  return count_in(i, contributors, from);
}

bool Accumulator::add_lasting(std::uint32_t block, std::span<const std::byte> wire_bytes,
                              std::uint16_t contributors, HostSet from) {
  const std::size_t i = block - range_.begin;
  if (contributors == 0 || contributors_[i] > 0) return add(block, wire_bytes, contributors, from);
  GP_ASSERT(range_.contains(block) && awaited_[i] > 0);
  GP_ASSERT(wire_bytes.size() == geometry_.bytes_in(block));
  lasting_[i] = wire_bytes.data();
  return count_in(i, contributors, from);
}

void Accumulator::take_in(std::uint32_t block, const std::byte* wire_bytes, WireType wire) {
  const std::size_t i = block - range_.begin;
  std::byte* const sum = memory_.data() + offset(block);
  const std::size_t elements = geometry_.elements_in(block);
  const bool is_plain = wire == WireType::kElements;
  const reduce::Kernels& kernels = is_plain ? *kernels_ : reduce::kernels_for(wire);
  const std::byte* const first = std::exchange(lasting_[i], nullptr);
  if (first != nullptr && is_plain) return kernels_->add(sum, first, wire_bytes, elements);
  if (first != nullptr) kernels_->set(sum, first, elements);
  if (contributors_[i] == 0) {
    kernels.set(sum, wire_bytes, elements);
  } else {
    kernels.accumulate(sum, wire_bytes, elements);
  }
}

bool Accumulator::count_in(std::size_t i, std::uint16_t contributors, HostSet from) {
  GP_ASSERT(from.size() == host_words_);
  contributors_[i] = static_cast<std::uint16_t>(contributors_[i] + contributors);
  for (std::size_t w = 0; w < host_words_; ++w) hosts_[i * host_words_ + w] |= from[w];
  return --awaited_[i] == 0;
}

std::span<const std::byte> Accumulator::seal(std::uint32_t block, double factor) {
  std::byte* sum = memory_.data() + offset(block);
  const std::size_t elements = geometry_.elements_in(block);
  const std::byte* const alone = std::exchange(lasting_[block - range_.begin], nullptr);
  if (alone != nullptr) kernels_->set(sum, alone, elements);
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
  return {sum, geometry_.bytes_in(block)};
}

void Accumulator::narrow(std::uint32_t block, WireType wanted) {
  GP_ASSERT(narrow_at_ > 0);
  const std::byte* const sum = memory_.data() + offset(block);
  const std::size_t elements = geometry_.elements_in(block);
  const WireType wire = reduce::fitting(wanted, sum, elements);
  wire_types_[block - range_.begin] = wire;
  if (wire == WireType::kElements) return;
  reduce::encode(wire, memory_.data() + wire_offset(block), sum, elements);
}

std::span<const std::byte> Accumulator::round(std::uint32_t block) {
  if (wire_type(block) != WireType::kElements) {
    reduce::decode(wire_type(block), memory_.data() + offset(block),
                   memory_.data() + wire_offset(block), geometry_.elements_in(block));
  }
  return elements(block);
}

void Accumulator::replace(std::uint32_t block, std::span<const std::byte> wire_bytes,
                          std::uint16_t contributors, HostSet from, WireType wire) {
  GP_ASSERT(range_.contains(block) && wire_bytes.size() == bytes_in(block, wire));
  const std::size_t i = block - range_.begin;
  wire_types_[i] = wire;
  std::memcpy(memory_.data() + wire_offset(block), wire_bytes.data(), wire_bytes.size());
  lasting_[i] = nullptr;
  contributors_[i] = contributors;
  std::copy(from.begin(), from.end(),
            hosts_.begin() + static_cast<std::ptrdiff_t>(i * host_words_));
}

}  // namespace gradplane::aggregate
