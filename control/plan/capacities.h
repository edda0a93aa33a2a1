// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <vector>

#include "control/plan/planner.h"
#include "control/plan/selection.h"
#include "dataplane/api/plan.h"

namespace gradplane::plan {

/// The share of the pairs of the plan in force that must be measured under this plan before another
/// plan is compared with it.
inline constexpr double kMostMeasured = 0.75;

/// What the network carries from and to each member of a plan with selections.
struct Capacities {
  std::vector<RankCapacity> members;
  bool is_known = false;     // a rate was configured or measured; otherwise all rates are equal
  bool is_measured = false;  // kMostMeasured of the pairs were measured under the plan in force
};

/// The accesses of the members as they are configured and measured. The network is taken for one
/// big switch: only the accesses of sender and receiver limit a pair.
///
/// - The sample of a pair is only a share of its accesses, because in an exchange a sender's
///   updates leave together, and those for a receiver come together. So what an access has carried
///   is the sum over its pairs in one selection of the plan in force. Over several selections it is
///   their mean, weighted by their pairs, because each sample was taken in one of them. Pairs
///   without a sample count as the mean of the others. If more than half of the pairs have none,
///   the selection says nothing.
/// - Rates are measured only while updates come. So an access that gets few updates does not look
///   slow.
/// - An access is full if most of its sum is from samples that are no lower bounds. Then the sum is
///   its rate, as far as the samples count, on a scale of ratios as in measured_network().
///   Otherwise the sum is a lower bound.
/// - If the pairs of a full access are as fast as the other pairs at their other ends, the access
///   holds nobody back and may be faster than its sum. It is taken to be half as fast again.
/// - A sum that reaches the configured rate within kSameRate confirms this rate. Only a single
///   pair can show more than the configured rate, because the samples of a sum are of different
///   times.
/// - Where no rate is configured, a member of which nothing is known has the median of all measured
///   rates, and rates within kSameRate of the median are taken for equal. Otherwise errors of
///   measurement would change plans.
/// - Samples from before the plan in force count nothing, because other pairs sent beside them.
///   Without a plan in force, samples count as if all pairs sent at once.
Capacities capacities_of(const std::vector<api::Member>& members, const PlanRequest& request);

}  // namespace gradplane::plan
