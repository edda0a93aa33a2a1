// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/refusal_text.h"

#include <fmt/format.h>

#include "dataplane/model/limits.h"

namespace gradplane::daemon {
namespace {

/// For a job, and for a plan with new peers.
std::string no_room_text() {
  return fmt::format(
      "the node grants to {} senders already, which is the most; end another job here, choose "
      "roots with fewer children, or set grants.enabled: false",
      kMaxGrantSources);
}

}  // namespace

std::string refusal_text(JobRefusal why) {
  switch (why) {
    case JobRefusal::kTooMany:
      return fmt::format("the poll loop serves {} jobs, which is the most; wait until one ends",
                         kMaxJobs);
    case JobRefusal::kSameId:
      return "the poll loop has another job of the same number; start again with another key";
    case JobRefusal::kNoGrants:
      return "another engine of this node grants for its link; set grants.enabled: false";
    case JobRefusal::kNoRoom:
      return no_room_text();
    case JobRefusal::kNone:
      break;
  }
  return "the poll loop has not said why";
}

std::string refusal_text(PlanRefusal why) {
  switch (why) {
    case PlanRefusal::kTooMany:
      return "the node still carries rounds of the plan before the one in force; ask again when "
             "they have ended";
    case PlanRefusal::kNotNewer:
      return "the plan is not newer than the one in force";
    case PlanRefusal::kNoRoom:
      return no_room_text();
    case PlanRefusal::kNoJob:
      return "the job has ended here";
    case PlanRefusal::kOtherRanks:
      return "the plan gives the node a part with other ranks than it has; a node that sums for "
             "others keeps its ranks";
    case PlanRefusal::kPassed:
      return "the node has passed the round with which the plan was to begin; please report it";
    case PlanRefusal::kNone:
      break;
  }
  return "the poll loop has not said why";
}

}  // namespace gradplane::daemon
