// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/cli/bounds_command.h"

#include "control/cli/daemon_client.h"
#include "control/cli/exit_codes.h"
#include "control/cli/job_option.h"
#include "control/cli/output.h"
#include "control/telemetry/bounds.h"

namespace gradplane::cli {

int show_bounds(const BoundsOptions& options) {
  const auto job = parse_job_option(options.job);
  if (!job) return kExitUsage;
  const auto bounds = fetch_bounds(options.socket_path, *job);
  if (!bounds) {
    complain(bounds.error().message);
    return kExitFailure;
  }
  return print(options.json ? telemetry::bounds_json(bounds.value())
                            : telemetry::bounds_text(bounds.value()));
}

}  // namespace gradplane::cli
