// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "control/config/config.h"
#include "control/daemon/jobs.h"
#include "control/protocol/socket_messages.h"
#include "control/telemetry/bounds.h"

namespace gradplane::daemon {

/// The bounds of a job that runs here, from the requested tensor on: as many as fit a message. An
/// Error names the jobs that run here. Control thread.
Result<telemetry::BoundsPage> bounds_page(const config::Config& config, const JobTable& jobs,
                                          const protocol::BoundsRequest& request);

}  // namespace gradplane::daemon
