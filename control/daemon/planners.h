// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "control/config/config.h"
#include "control/session/actions.h"

namespace gradplane::daemon {

/// The planner that the configuration names, over its cluster.
session::Planner planner_of(const config::Config& config);
/// How long an all_reduce is predicted to take under a plan, for people. Empty where the
/// configuration does not say what the network is.
std::function<std::string(const api::Plan&)> plan_note_of(const config::Config& config);
/// The bounds that the configuration names, for the jobs that this node coordinates; empty when
/// nothing may ever be missing.
session::BoundsResolver resolver_of(const config::Config& config);
/// Whether a plan that another node sent can be run here at all.
Status check_plan(const api::Plan& plan);

}  // namespace gradplane::daemon
