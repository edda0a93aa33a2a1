// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

namespace gradplane {

/// Why a poll loop refuses a job.
enum class JobRefusal : std::uint8_t {
  kNone,
  kTooMany,   // the poll loop serves as many as it can
  kSameId,    // another job has this id
  kNoGrants,  // the job wants grants, and another engine of the node grants
  kNoRoom,    // the node grants to as many senders as it can
};

/// Why a further plan of a job is refused.
enum class PlanRefusal : std::uint8_t {
  kNone,
  kTooMany,     // two plans are alive: an older round has not ended, or another plan is prepared
  kNotNewer,    // its epoch is not after that of the plan in use
  kNoRoom,      // the node grants to as many senders as it can
  kNoJob,       // its job has ended here
  kOtherRanks,  // it lacks ranks of this node, although the node is in it
  kPassed,      // the node has already opened a round from the activation on under the older plan
};

}  // namespace gradplane
