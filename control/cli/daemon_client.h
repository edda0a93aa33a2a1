// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "control/protocol/socket_messages.h"
#include "control/telemetry/bounds.h"
#include "control/telemetry/rounds.h"
#include "control/telemetry/topology.h"
#include "dataplane/base/result.h"
#include "dataplane/base/time.h"

namespace gradplane::cli {

/// How long the daemon may take for each answer.
inline constexpr Duration kDaemonTimeout = Duration::seconds(3);

/// Asks the daemon on a control socket for its status: the text of a JSON object. The error says
/// which socket, why, and what to do.
Result<std::string> fetch_status(const std::string& socket_path);

/// Asks the daemon for the bounds of one job, or of all if `job` is 0. Returns one page for each
/// job, with all its tensors, so none from a daemon without jobs.
Result<std::vector<telemetry::BoundsPage>> fetch_bounds(const std::string& socket_path,
                                                        std::uint32_t job);

/// Asks the daemon for the last rounds that it has gathered under bounds, of one job, or of all if
/// `job` is 0. Returns one page for each job, with its newest `last` rounds at most, so none from a
/// daemon without jobs. `seen` is what the last call returned: rounds that it covers are left out.
Result<std::vector<telemetry::RoundsPage>> fetch_rounds(
    const std::string& socket_path, std::uint32_t job, std::uint32_t last,
    const std::vector<telemetry::RoundsPage>& seen);

/// Asks the daemon for the measured network and the trees over it. With `why` the answer also has
/// the plan that each planner would make for each job.
Result<telemetry::Topology> fetch_topology(const std::string& socket_path, bool why);

/// How long a new plan may take. The coordinator waits for the last rounds of the old plan and for
/// all nodes: 11 s at the default of liveness.suspect_after.
inline constexpr Duration kReplanTimeout = Duration::seconds(60);
/// Asks the daemon for another plan for a job that runs. The error says why the plan stays.
Result<protocol::Replanned> request_replan(const std::string& socket_path,
                                           const protocol::ReplanRequest& request);

/// GRADPLANE_SOCKET of the environment, else the path where the daemon listens by default.
std::string default_socket_path();

}  // namespace gradplane::cli
