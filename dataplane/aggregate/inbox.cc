// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/aggregate/inbox.h"

#include <cstring>

#include "dataplane/base/assert.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/staleness.h"
#include "dataplane/reduce/kernels.h"
#include "dataplane/reduce/partial.h"

namespace gradplane::aggregate {

static_assert((kMaxStalenessSteps + 2) * kMaxTrees * kMaxLivePlans <= 0xffff,
              "Inbox counts the updates of all ranks of all plans that may be ahead in 16 bits");

std::size_t Inbox::bytes_for(const Geometry& geometry) {
  return std::size_t{geometry.blocks} * geometry.block_elements * accumulator_bytes(geometry.type);
}

Inbox::Inbox(const Geometry& geometry)
    : geometry_(geometry),
      stride_bytes_(std::size_t{geometry.block_elements} * accumulator_bytes(geometry.type)),
      sums_(std::make_unique<std::byte[]>(bytes_for(geometry))),
      updates_(geometry.blocks) {
  GP_ASSERT(is_floating(geometry.type));
}

void Inbox::add(std::uint32_t block, std::span<const std::byte> wire_bytes) {
  GP_ASSERT(block < geometry_.blocks && wire_bytes.size() == geometry_.bytes_in(block));
  const reduce::Kernels& kernels = reduce::kernels_for(geometry_.type);
  const auto add_bytes = updates_[block] == 0 ? kernels.set : kernels.accumulate;
  add_bytes(sum(block), wire_bytes.data(), geometry_.elements_in(block));
  ++updates_[block];
}

std::uint16_t Inbox::take(std::uint32_t block, std::span<std::byte> own, std::uint16_t ranks) {
  add(block, own);
  const std::uint16_t count = updates_[block];
  const std::size_t elements = geometry_.elements_in(block);
  reduce::scale(geometry_.type, sum(block), static_cast<double>(ranks) / count, elements);
  reduce::kernels_for(geometry_.type).finish(own.data(), sum(block), elements);
  updates_[block] = 0;
  return count;
}

}  // namespace gradplane::aggregate
