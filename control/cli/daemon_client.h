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

/// Asks the daemon for the bounds of one job (0: of all): one page for each job, with all its
/// tensors. A daemon without jobs gives none.
Result<std::vector<telemetry::BoundsPage>> fetch_bounds(const std::string& socket_path,
                                                        std::uint32_t job);

/// Asks the daemon for the last rounds of one job (0: of all) that it has gathered under bounds:
/// one page for each job, with its newest `last` rounds at most. Of a job that is in `seen`, what
/// was fetched the last time, only what has come since. A daemon without jobs gives none.
Result<std::vector<telemetry::RoundsPage>> fetch_rounds(
    const std::string& socket_path, std::uint32_t job, std::uint32_t last,
    const std::vector<telemetry::RoundsPage>& seen);

/// Asks the daemon for the measured network and the trees over it. `why`: with what all planners
/// would make of each job.
Result<telemetry::Topology> fetch_topology(const std::string& socket_path, bool why);

/// How long a new plan may take: the coordinator waits for the last rounds of the plan before and
/// for all nodes, which at the default of liveness.suspect_after is 11 s.
inline constexpr Duration kReplanTimeout = Duration::seconds(60);
/// Asks the daemon for another plan for a job that runs. The error says why the plan stays.
Result<protocol::Replanned> request_replan(const std::string& socket_path,
                                           const protocol::ReplanRequest& request);

/// GRADPLANE_SOCKET of the environment, else where the daemon listens by default.
std::string default_socket_path();

}  // namespace gradplane::cli
