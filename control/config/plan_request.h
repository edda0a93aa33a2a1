// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <vector>

#include "control/config/config.h"
#include "control/plan/planner.h"

namespace gradplane::config {

/// The part of a request to planners that follows from the configuration. Members, roots and the
/// kind of plan depend on the job, and are not set.
plan::PlanRequest plan_request_of(const Config& config);

/// Whether a change of the network can lead to another plan of this kind.
bool plan_follows_network(const Config& config, PlanKind kind);

/// The nodes that may be roots of a plan of this kind, which may be another kind than plan.kind.
/// None: the planner chooses.
std::vector<api::NodeId> root_candidates(const Config& config, PlanKind kind);

}  // namespace gradplane::config
