// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <vector>

#include "control/plan/planner.h"
#include "control/plan/selection.h"
#include "dataplane/api/plan.h"

namespace gradplane::plan {

/// So much of what goes under the plan in force has to be measured under it before another plan is
/// compared with it.
inline constexpr double kMostMeasured = 0.75;

/// What the network carries from and to each member of a plan with selections.
struct Capacities {
  std::vector<RankCapacity> members;
  bool is_known = false;     // a rate was configured or measured; otherwise all are alike
  bool is_measured = false;  // kMostMeasured of the pairs of the plan in force, under this plan
};

/// The accesses of the members as they are configured and measured. The network is one big switch:
/// only the two ends of a pair limit it.
///
/// - A sample of a pair is a share: in an exchange a sender's updates leave together, and those for
///   a receiver come together. So what an access has carried is the sum over the pairs of one
///   selection of the plan in force; over several selections it is their mean, weighted by their
///   pairs, because each sample was taken in one of them. Pairs without a sample count as the mean
///   of the others; where those are more than half, the selection says nothing.
/// - This is a rate at a time when updates came. So it does not fall where fewer updates come, and
///   an access that gets few is not slow for it.
/// - An access is full if most of the sum is of pairs that filled something. Then the sum is its
///   rate, as far as the samples count, on a scale of ratios as in measured_network(). Otherwise
///   the sum is a lower bound.
/// - Where the pairs of a full access have as much as those beside them at their other ends, nobody
///   waits for it. It may be faster than its sum: half as fast again is believed of it.
/// - A sum that reaches the configured rate within kSameRate confirms it. More than the configured
///   rate is believed only of a single pair, because the samples of a sum are of different times.
/// - Where no rate is configured, the median of all measured ones is what a member has of which
///   nothing is known, and rates within kSameRate of it are the same: otherwise errors of
///   measurements would change plans.
/// - Samples from before the plan in force were taken with other pairs beside, and count nothing.
///   Without such a plan, each sample counts as if all pairs sent at once.
Capacities capacities_of(const std::vector<api::Member>& members, const PlanRequest& request);

}  // namespace gradplane::plan
