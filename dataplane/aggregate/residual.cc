// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/aggregate/residual.h"

#include <array>

#include "dataplane/base/assert.h"
#include "dataplane/model/limits.h"
#include "dataplane/reduce/kernels.h"
#include "dataplane/reduce/partial.h"
#include "dataplane/reduce/wire_codec.h"

namespace gradplane::aggregate {
namespace {

/// Half precision is summed in twice its width.
constexpr std::size_t kMaxSumBytes = 2 * kMaxBlockBytes;

}  // namespace

Residual::Residual(const Geometry& geometry)
    : geometry_(geometry),
      bytes_(std::make_unique<std::byte[]>(std::size_t{geometry.elements} *
                                           element_bytes(geometry.type))),
      kept_(geometry.blocks) {
  kept_.reset(geometry.blocks);
}

bool Residual::keep(std::uint32_t block, std::span<const std::byte* const> parts) {
  GP_ASSERT(!parts.empty());
  alignas(64) std::array<std::byte, kMaxSumBytes> sum;
  const reduce::Kernels& kernels = reduce::kernels_for(geometry_.type);
  const std::size_t count = geometry_.elements_in(block);
  kernels.set(sum.data(), parts[0], count);
  for (const std::byte* part : parts.subspan(1)) kernels.accumulate(sum.data(), part, count);
  kernels.finish(at(block), sum.data(), count);
  kept_.clear(block);
  if (!reduce::is_finite(geometry_.type, at(block), count)) return false;
  kept_.set(block);
  return true;
}

void Residual::keep_error(std::uint32_t block, WireType wire, const std::byte* elements,
                          std::span<const std::byte> wire_bytes) {
  const std::size_t count = geometry_.elements_in(block);
  GP_ASSERT(wire_bytes.size() == gradplane::wire_bytes(wire, geometry_.type, count));
  reduce::rounding_error(wire, at(block), elements, wire_bytes.data(), count);
  kept_.set(block);
}

void Residual::move_to(std::uint32_t block, std::byte* elements) {
  alignas(64) std::array<std::byte, kMaxSumBytes> sum;
  const reduce::Kernels& kernels = reduce::kernels_for(geometry_.type);
  const std::size_t count = geometry_.elements_in(block);
  kernels.set(sum.data(), elements, count);
  kernels.accumulate(sum.data(), at(block), count);
  kernels.finish(elements, sum.data(), count);
  kept_.clear(block);
}

}  // namespace gradplane::aggregate
