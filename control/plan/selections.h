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

/// If a request wants selections: whether a plan with them can be made.
Status check_for_selections(const PlanRequest& request);

/// Gives the plan of a request with selections freshness + 1 of them, which are used in turn. So
/// each pair meets at least once in any freshness + 1 steps. Each update has the wanted share of
/// receivers, and more where freshness demands them or where they cost no time. With random
/// receivers it gets no more for the sake of time.
void add_selections(api::Plan& plan, const PlanRequest& request);

/// Whether these selections depend on the network.
bool selections_follow_network(const SelectionsWanted& wanted);

/// How long exchanges take when the links carry nothing else. An exchange takes as long as the
/// slowest link of a member.
struct ExchangePrediction {
  Duration time;           // of one exchange, as a mean over the selections
  std::string bottleneck;  // the slowest link of the slowest selection
  /// Enough was measured under `sampled_under` to compare other plans with it.
  bool is_measured = false;
};
/// Predicts the exchanges under a plan that has selections and the members of the request. Nothing
/// if no rate is known.
std::optional<ExchangePrediction> predict_exchanges(const api::Plan& plan,
                                                    const PlanRequest& request);

/// Whether the selections of a plan whose members and trees are valid can be carried out.
Status validate_selections(const api::Plan& plan);

}  // namespace gradplane::plan
