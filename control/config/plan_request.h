// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <vector>

#include "control/config/config.h"
#include "control/plan/planner.h"

namespace gradplane::config {

/// What a configuration tells planners, without the job: members, roots, and what kind of plan.
plan::PlanRequest plan_request_of(const Config& config);

/// Whether plans of this kind are made anew when the network has changed.
bool plan_follows_network(const Config& config, PlanKind kind);

/// The nodes that may be roots of a plan of this kind, which need not be the configuration's own.
/// None: the planner chooses.
std::vector<api::NodeId> root_candidates(const Config& config, PlanKind kind);

}  // namespace gradplane::config
