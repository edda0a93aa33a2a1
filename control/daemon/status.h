// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "control/config/config.h"
#include "control/daemon/core.h"
#include "control/daemon/groups.h"
#include "control/daemon/jobs.h"
#include "control/daemon/link_table.h"
#include "control/daemon/ranks.h"
#include "control/server/server.h"
#include "control/session/session_manager.h"
#include "control/telemetry/status.h"
#include "dataplane/api/snapshot.h"

namespace gradplane::daemon {

/// "gradplaned 0.1.0".
std::string software();

/// Everything that a status report is made of.
struct StatusSources {
  const config::Config& config;
  const session::SessionManager& session;
  const server::Server& server;
  const Cores& cores;  // each has its snapshot
  const JobTable& jobs;
  const RankTable& ranks;
  const LinkTable& links;
  const GroupMembership& groups;
  Instant started;
};

telemetry::StatusReport build_status(const StatusSources& from);

/// What the status of jobs is made of.
struct JobSources {
  const config::Config& config;
  std::vector<session::JobView> views;  // of the jobs that the session knows
  const std::deque<session::FailureView>& failures;
  const JobTable& jobs;
  const RankTable& ranks;
  const api::EngineSnapshot& engine;
};
/// Each job is in the list once.
std::vector<telemetry::JobStatus> job_statuses(const JobSources& from);

/// The nodes with which the session exchanges messages, and those to which blocks go.
std::vector<telemetry::PeerStatus> peer_status(const config::Config& config,
                                               const std::vector<session::PeerView>& views,
                                               const api::EngineSnapshot& engine);

/// The links to this node of which something is known.
std::vector<telemetry::LinkStatus> link_status(const config::Config& config,
                                               const LinkTable& links);

}  // namespace gradplane::daemon
