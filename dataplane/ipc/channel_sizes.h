// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/ipc/layout.h"
#include "dataplane/model/limits.h"

namespace gradplane::ipc {

/// The sizes of a channel's arena. Each side keeps its own checked copy.
struct ChannelSizes {
  std::uint32_t slot_count = kRoundSlots;
  std::uint64_t slot_bytes = kMaxRoundBytes;
  std::uint32_t core_count = 1;  // poll cores that share the rank's job

  /// Whether slot_count is a power of two and at least 2, slot_bytes is a multiple of the block
  /// alignment, and everything is within its limits.
  constexpr bool valid() const {
    return slot_count >= 2 && slot_count <= kRoundSlots && (slot_count & (slot_count - 1)) == 0 &&
           slot_bytes > 0 && slot_bytes <= kMaxRoundBytes && slot_bytes % kBlockAlignBytes == 0 &&
           core_count >= 1 && core_count <= kMaxCores;
  }
  /// The size of the whole channel. Only for valid() sizes.
  constexpr std::uint64_t total_bytes() const { return slot_offset(0) + slot_count * slot_bytes; }
  /// The offset of a round's slot. The number of slots is a power of two, so slots stay in turn
  /// when the round number wraps.
  constexpr std::uint64_t slot_offset(std::uint32_t round) const {
    return arena_offset(core_count) + (round & (slot_count - 1)) * slot_bytes;
  }
  bool operator==(const ChannelSizes&) const = default;
};
static_assert(ChannelSizes{}.valid());
static_assert(kRoundSlots * kMaxRoundBytes < (std::uint64_t{1} << 40),
              "total_bytes cannot overflow");

}  // namespace gradplane::ipc
