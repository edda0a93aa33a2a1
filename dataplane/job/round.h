// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/aggregate/accumulator.h"
#include "dataplane/aggregate/bucket.h"
#include "dataplane/model/geometry.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/stall.h"

namespace gradplane::job {

/// One round slot of a job at this node. A slot serves rounds id, id + kRoundSlots, ... in turn.
struct Round {
  bool open = false;
  std::uint32_t id = 0;  // of the open round, or of the next one that may open here
  Geometry geometry;
  std::uint32_t submitted = 0;         // bit per local rank
  std::uint32_t results_awaited = 0;   // blocks whose result is not here yet
  std::uint32_t results_unacked = 0;   // result edges whose peer does not have everything yet
  std::uint32_t pushes_unsettled = 0;  // push edges whose peer has not said what entered
  std::uint32_t partial_blocks = 0;    // whose result lacks some rank's contribution
  std::uint16_t min_contributors = 0;
  bool told = false;                    // local ranks have been told that it is done
  aggregate::Bucket* bucket = nullptr;  // whose bounds are known here; none: it is gathered exactly
  std::uint64_t lossy_trees = 0;        // bit per tree that is rooted here and gathers under bounds
  std::vector<std::uint32_t> local_left;  // per tree: blocks of local ranks that are not summed yet
  std::vector<aggregate::Accumulator>
      accumulators;  // per tree; unused where the contribution is sent as it is
};
static_assert(kMaxTrees <= 64, "one bit per tree in Round::lossy_trees");
static_assert(kMaxLocalRanks <= 32, "one bit per local rank in Round::submitted");

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
  kBusy,      // the slot still serves an older round: offer it again later
  kRejected,  // no honest client submits this
  kMismatch,  // honest, but other ranks said something else of this round; an event tells
};

}  // namespace gradplane::job
