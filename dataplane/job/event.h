// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "dataplane/model/geometry.h"
#include "dataplane/model/stall.h"

namespace gradplane::job {

/// What a job tells its host.
struct Event {
  enum class Kind : std::uint8_t { kRoundDone, kMismatch, kStalled };
  Kind kind = Kind::kRoundDone;
  std::uint16_t local_rank = 0;      // kRoundDone: index into JobConfig::local_ranks
  std::uint16_t contributors = 0;    // kRoundDone: the fewest of any block
  std::uint32_t partial_blocks = 0;  // kRoundDone: lack some rank's contribution
  std::uint16_t node = 0;            // kMismatch: who said something else; kStalled: of Stall
  std::uint32_t round = 0;
  Geometry ours;     // kMismatch
  Geometry theirs;   // kMismatch
  Stall stall = {};  // kStalled
};

enum class SubmitResult : std::uint8_t {
  kAccepted,
  kBusy,      // an older round has the slot, or is of the same bucket: offer it again later
  kRejected,  // no honest client submits this
  kMismatch,  // honest, but other ranks said something else of this round; an event tells
};

}  // namespace gradplane::job
