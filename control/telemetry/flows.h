// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>

#include "control/telemetry/status.h"

/// The output of gradplane flows: what each flow of a status does, and what limits it. Control
/// thread only.
namespace gradplane::telemetry {

/// How this node grants its own link to those that send to it in a job: "weighted, weight 2". What
/// it sends itself depends on the grants of its peers. Empty: it grants nothing.
std::string grants_text(const JobStatus& job);

/// Text for a person, with a table for each job that runs.
std::string flows_text(const StatusReport& report);
/// The same as one JSON list, an object for each job that runs.
std::string flows_json(const StatusReport& report);

}  // namespace gradplane::telemetry
