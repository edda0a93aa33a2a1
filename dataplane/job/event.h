// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "dataplane/model/geometry.h"
#include "dataplane/model/stall.h"

namespace gradplane::job {

/// What a job tells its engine.
struct Event {
  enum class Kind : std::uint8_t { kRoundDone, kMismatch, kStalled };
  Kind kind = Kind::kRoundDone;
  std::uint16_t local_rank = 0;      // kRoundDone: index into JobConfig::local_ranks
  std::uint16_t contributors = 0;    // kRoundDone: the fewest contributions to any block
  std::uint32_t partial_blocks = 0;  // kRoundDone: blocks that lack some rank's contribution
  // For kMismatch, the node that stated something else; for kStalled, the node that causes it.
  std::uint16_t node = 0;
  std::uint32_t round = 0;
  Geometry ours;     // kMismatch
  Geometry theirs;   // kMismatch
  Stall stall = {};  // kStalled
};

enum class SubmitResult : std::uint8_t {
  kAccepted,
  // The round cannot begin yet, for example while an older one has the slot or the bucket: submit
  // it again later.
  kBusy,
  kRejected,  // no correct client submits this
  kMismatch,  // other ranks stated something else about this round; an event follows
};

}  // namespace gradplane::job
