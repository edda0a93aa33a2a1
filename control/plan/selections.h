// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <optional>
#include <string>

#include "control/plan/planner.h"
#include "dataplane/api/plan.h"
#include "dataplane/base/result.h"
#include "dataplane/base/time.h"

namespace gradplane::plan {

/// Whether a plan with the selections that a request wants can be made, if it wants any.
Status check_for_selections(const PlanRequest& request);

/// Gives the plan of such a request freshness + 1 selections. They follow each other and begin
/// again, so each pair meets at least once in any freshness + 1 steps. Each update has the share of
/// receivers that is wanted, and more where freshness demands them or where they cost no time.
/// Receivers at random are those that are wanted and those that freshness demands, and no more.
void add_selections(api::Plan& plan, const PlanRequest& request);

/// Whether the selections of such a request follow the network.
bool selections_follow_network(const SelectionsWanted& wanted);

/// How long exchanges take over links that do nothing else: each as long as the link of a member
/// that takes longest.
struct ExchangePrediction {
  Duration time;           // of one exchange, in the mean over the selections
  std::string bottleneck;  // the link that takes longest in the longest of them
  /// Enough was measured under `sampled_under` to compare other plans with it.
  bool is_measured = false;
};
/// Of the exchanges under a plan with selections and the members of the request; nothing: no rate
/// is known.
std::optional<ExchangePrediction> predict_exchanges(const api::Plan& plan,
                                                    const PlanRequest& request);

/// Whether the selections of a plan whose members and trees are valid can be carried out.
Status validate_selections(const api::Plan& plan);

}  // namespace gradplane::plan
