// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/base/time.h"

namespace gradplane {

/// Why a round was summed.
enum class CloseReason : std::uint8_t {
  kFull,      // every block of every source was in
  kEarly,     // who lacked something had had the time for it, and every tensor was in its bound
  kDeadline,  // its time and that of a repair was over; every critical block was in
  kAbsent,    // some source had sent nothing for too long, and was gone on without
};
inline constexpr std::size_t kCloseReasons = 4;

/// Sources and tensors that a report names, those that lack most first; more are counted.
inline constexpr std::size_t kReportedSources = 32;
inline constexpr std::size_t kReportedTensors = 8;

/// What a root says of a round under loss bounds that it has summed: why, after how long, and what
/// was missing of whom and of which tensors. Of a full round it names neither.
struct RoundReport {
  struct Source {
    std::uint16_t node = 0;
    std::uint32_t missing_blocks = 0;  // of RoundReport::blocks
  };
  /// A block that two tensors share is missing of both.
  struct Tensor {
    std::uint32_t index = 0;           // in the bucket's table
    std::uint32_t missing_blocks = 0;  // of all sources
    std::uint32_t expected_blocks = 0;
  };

  /// Counts the rounds of a job that a poll core of this node has closed, from 1 on. Where one is
  /// left out, its report was lost.
  std::uint64_t number = 0;
  std::uint32_t round = 0;
  std::uint32_t epoch = 0;  // of the plan that carried the round
  std::uint16_t bucket = 0;
  std::uint8_t tree = 0;
  CloseReason reason = CloseReason::kFull;
  Duration duration = {};            // from the first block to the close; full: to the last block
  std::uint32_t blocks = 0;          // that each source has in this tree
  std::uint32_t source_count = 0;    // that the tree has
  std::uint32_t missing_blocks = 0;  // of all sources
  std::uint32_t lacking_sources = 0;
  std::uint32_t lacking_tensors = 0;
  std::uint32_t other_tensors_missing_blocks = 0;  // of those that `tensors` has no room for
  std::array<Source, kReportedSources> sources{};  // the first lacking_sources of them
  std::array<Tensor, kReportedTensors> tensors{};  // the first lacking_tensors of them
};

}  // namespace gradplane
