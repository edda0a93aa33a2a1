// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gradplane {

/// What a round computes. A slot is cut into one shard for each rank where the operation has
/// shards, and shard r belongs to rank r. The numbers are on the wire and in shared memory: never
/// change one. docs/protocol.md, section 10, says what follows from each.
enum class Operation : std::uint8_t {
  kAllReduce = 1,      // every rank gets the sum over all ranks
  kReduceScatter = 2,  // each rank gets its shard of that sum
  kAllGather = 3,      // every rank gets the shard of each rank, as that rank has it
  kBroadcast = 4,      // every rank gets what the source rank has
};
inline constexpr std::array<std::string_view, 4> kOperationNames = {"all_reduce", "reduce_scatter",
                                                                    "all_gather", "broadcast"};

constexpr bool is_operation(std::uint8_t raw) {
  return raw >= 1 && raw <= kOperationNames.size();
}
constexpr std::string_view operation_name(Operation o) {
  return kOperationNames[static_cast<std::size_t>(o) - 1];
}
static_assert(is_operation(static_cast<std::uint8_t>(Operation::kBroadcast)));

constexpr bool has_shards(Operation o) {
  return o == Operation::kReduceScatter || o == Operation::kAllGather;
}
/// Whether every rank is in each block. Otherwise a block is what one rank has: the rank whose
/// shard it is, or the source.
constexpr bool all_contribute(Operation o) {
  return o == Operation::kAllReduce || o == Operation::kReduceScatter;
}
/// Whether every rank gets each block. Otherwise the rank whose shard it is gets it.
constexpr bool all_receive(Operation o) {
  return o != Operation::kReduceScatter;
}

}  // namespace gradplane
