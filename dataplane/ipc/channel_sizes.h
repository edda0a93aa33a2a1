// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/ipc/layout.h"
#include "dataplane/model/limits.h"

namespace gradplane::ipc {

/// What a channel's arena looks like; each side keeps its own checked copy.
struct ChannelSizes {
  std::uint32_t slot_count = kRoundSlots;
  std::uint64_t slot_bytes = kMaxRoundBytes;
  std::uint32_t core_count = 1;  // that share the rank's job

  /// A power of two of at least two slots, each a multiple of the block alignment, within limits.
  constexpr bool valid() const {
    return slot_count >= 2 && slot_count <= kRoundSlots && (slot_count & (slot_count - 1)) == 0 &&
           slot_bytes > 0 && slot_bytes <= kMaxRoundBytes && slot_bytes % kBlockAlignBytes == 0 &&
           core_count >= 1 && core_count <= kMaxCores;
  }
  /// Of the whole channel. Only for sizes that are valid().
  constexpr std::uint64_t total_bytes() const { return slot_offset(0) + slot_count * slot_bytes; }
  /// Where the slot of a round begins. A power of two divides the numbers that a round can have, so
  /// the slots stay in turn when the round number wraps.
  constexpr std::uint64_t slot_offset(std::uint32_t round) const {
    return arena_offset(core_count) + (round & (slot_count - 1)) * slot_bytes;
  }
  bool operator==(const ChannelSizes&) const = default;
};
static_assert(ChannelSizes{}.valid());
static_assert(kRoundSlots * kMaxRoundBytes < (std::uint64_t{1} << 40),
              "total_bytes cannot overflow");

}  // namespace gradplane::ipc
