// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gradplane {

/// What a round computes. If the operation has shards, a slot is cut into one shard for each rank,
/// and shard r belongs to rank r. The numbers are on the wire and in shared memory: never change
/// one. docs/protocol.md, section 10, says what follows from each.
enum class Operation : std::uint8_t {
  kAllReduce = 1,      // every rank gets the sum over all ranks
  kReduceScatter = 2,  // each rank gets its shard of that sum
  kAllGather = 3,      // every rank gets the shard of each rank, as that rank has it
  kBroadcast = 4,      // every rank gets the source rank's slot
  kExchange = 5,  // every rank gets the mean of its own update and those it receives; see below
};
inline constexpr std::array<std::string_view, 5> kOperationNames = {
    "all_reduce", "reduce_scatter", "all_gather", "broadcast", "exchange"};

/// In an exchange (SELMCAST: Luo et al., IEEE TSC 2024, section III) each rank sends its update to
/// the receivers that a selection of the plan gives it. A rank's result is the mean over its own
/// update and those that have come to it, times the number of ranks. So a program that divides a
/// sum by the number of ranks, as DDP does, gets the mean. Results differ from rank to rank.
///
/// kMaxSelections is the most selections of a plan. Steps use them in turn.
inline constexpr std::size_t kMaxSelections = 8;

constexpr bool is_operation(std::uint8_t raw) {
  return raw >= 1 && raw <= kOperationNames.size();
}
constexpr std::string_view operation_name(Operation o) {
  return kOperationNames[static_cast<std::size_t>(o) - 1];
}
static_assert(is_operation(static_cast<std::uint8_t>(Operation::kExchange)));

constexpr bool has_shards(Operation o) {
  return o == Operation::kReduceScatter || o == Operation::kAllGather;
}
/// Whether blocks are sums over ranks. Otherwise one rank alone contributes each block: the owner
/// of the shard, or the source rank.
constexpr bool all_contribute(Operation o) {
  return o == Operation::kAllReduce || o == Operation::kReduceScatter || o == Operation::kExchange;
}
/// Whether every rank gets each block. Otherwise only the owner of the shard gets it.
constexpr bool all_receive(Operation o) {
  return o != Operation::kReduceScatter;
}

/// Whether results go from the root to all other nodes of its tree.
constexpr bool results_leave_root(Operation o) {
  return all_receive(o) && o != Operation::kExchange;
}

}  // namespace gradplane
