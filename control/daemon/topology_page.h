// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <vector>

#include "control/config/config.h"
#include "control/daemon/jobs.h"
#include "control/telemetry/status.h"
#include "control/telemetry/topology.h"

namespace gradplane::daemon {

/// Planning over more sites than this would keep the control thread from its work: the slowest
/// planner takes 0.03 s over a full mesh of so many (docs/planners.md).
inline constexpr std::size_t kMaxComparedSites = 40;

/// The network as this node knows it: the measured links to it, and the trees of its jobs. `why`:
/// with what all planners would make of each job, over the network of the configuration.
telemetry::Topology topology_page(const config::Config& config, const JobTable& jobs,
                                  const std::vector<telemetry::LinkStatus>& links, bool why);

}  // namespace gradplane::daemon
