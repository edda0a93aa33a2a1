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
  kFull,  // every block of every source was in
  // Sources with missing blocks had had the time for them, and every tensor was within its bound.
  kEarly,
  kDeadline,  // the time, including a repair, was over; every critical block was in
  kAbsent,    // a source had sent nothing for too long, and was left out
};
inline constexpr std::size_t kCloseReasons = 4;

/// The most sources and tensors that a report names, those that lack most first; further ones are
/// only counted.
inline constexpr std::size_t kReportedSources = 32;
inline constexpr std::size_t kReportedTensors = 8;

/// What a root reports about a round under loss bounds that it has summed: why and after how long
/// it was closed, and what was missing of which sources and tensors. The report of a full round
/// names neither.
struct RoundReport {
  struct Source {
    std::uint16_t node = 0;
    std::uint32_t missing_blocks = 0;  // missing among RoundReport::blocks
  };
  /// A missing block that two tensors share counts for both.
  struct Tensor {
    std::uint32_t index = 0;           // index in the bucket's tensor table
    std::uint32_t missing_blocks = 0;  // of all sources
    std::uint32_t expected_blocks = 0;
  };

  /// Counts the rounds of a job that a poll core of this node has closed, from 1 on. A gap means
  /// that reports were lost.
  std::uint64_t number = 0;
  std::uint32_t round = 0;
  std::uint32_t epoch = 0;  // epoch of the plan that carried the round
  std::uint16_t bucket = 0;
  std::uint8_t tree = 0;
  CloseReason reason = CloseReason::kFull;
  // From the first block to the close, or to the last block of a full round.
  Duration duration = {};
  std::uint32_t blocks = 0;          // blocks of each source in this tree
  std::uint32_t source_count = 0;    // sources of the tree
  std::uint32_t missing_blocks = 0;  // of all sources
  std::uint32_t lacking_sources = 0;
  std::uint32_t lacking_tensors = 0;
  // Missing blocks of tensors for which `tensors` has no room.
  std::uint32_t other_tensors_missing_blocks = 0;
  std::array<Source, kReportedSources> sources{};  // only the first lacking_sources are valid
  std::array<Tensor, kReportedTensors> tensors{};  // only the first lacking_tensors are valid
};

}  // namespace gradplane
