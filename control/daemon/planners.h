// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "control/config/config.h"
#include "control/session/actions.h"

namespace gradplane::daemon {

/// The planner that the configuration names, over its cluster, and over the network as it is
/// configured and measured. It may run on any thread.
session::Planner planner_of(const config::Config& config);
/// The bounds that the configuration names, for the jobs that this node coordinates; empty when
/// nothing may ever be missing.
session::BoundsResolver resolver_of(const config::Config& config);
/// Whether a plan that another node sent can be run here at all.
Status check_plan(const api::Plan& plan);

}  // namespace gradplane::daemon
