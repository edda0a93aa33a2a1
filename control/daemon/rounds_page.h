// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "control/config/config.h"
#include "control/daemon/jobs.h"
#include "control/protocol/socket_messages.h"
#include "control/telemetry/rounds.h"

namespace gradplane::daemon {

/// A report with the names of nodes and tensors instead of their numbers.
telemetry::RoundEntry round_entry(const config::Config& config, const JobBounds& bounds,
                                  const RoundReport& report);

/// The last rounds of a job that runs here, from the requested one on: as many as fit a message. An
/// Error names the jobs that run here. Control thread.
Result<telemetry::RoundsPage> rounds_page(const config::Config& config, const JobTable& jobs,
                                          const protocol::RoundsRequest& request);

}  // namespace gradplane::daemon
