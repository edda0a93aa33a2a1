// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gradplane {

/// What a rank did with its channel that no correct client does. It ends the rank's session.
enum class RankFault : std::uint8_t {
  kBadSubmission,        // it contradicts itself, is out of order, or fits no round of the job
  kTooManyRounds,        // it comes while kMaxInFlightRounds rounds of the rank are in flight
  kBadRingIndex,         // a ring has an impossible index
  kCompletionsNotTaken,  // the ring of completions is full
  kCount,
};
inline constexpr std::size_t kRankFaults = static_cast<std::size_t>(RankFault::kCount);
/// The names in a status and in metrics.
inline constexpr std::array<std::string_view, kRankFaults> kRankFaultNames = {
    "rank_bad_submission", "rank_too_many_rounds", "rank_bad_ring_index",
    "rank_completions_not_taken"};

constexpr std::string_view rank_fault_name(RankFault fault) {
  return kRankFaultNames[static_cast<std::size_t>(fault)];
}

}  // namespace gradplane
