// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "control/config/config.h"
#include "control/session/actions.h"

namespace gradplane::daemon {

/// The planner that the configuration names, for its cluster and for the network as it is
/// configured and measured. It may run on any thread.
session::Planner planner_of(const config::Config& config);
/// Gives buckets the bounds of the configuration, for the jobs that this node coordinates. Empty
/// when no bucket needs to be installed.
session::BoundsResolver resolver_of(const config::Config& config);
/// Whether this node can carry out a plan that another node sent.
Status check_plan(const api::Plan& plan);

}  // namespace gradplane::daemon
