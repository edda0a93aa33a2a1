// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/cli/topology_command.h"

#include "control/cli/daemon_client.h"
#include "control/cli/exit_codes.h"
#include "control/cli/output.h"
#include "control/telemetry/topology.h"

namespace gradplane::cli {
namespace {

std::string drawn(const telemetry::Topology& topology, const TopologyOptions& options) {
  if (options.format == "json") return telemetry::to_json(topology) + "\n";
  if (options.why) return telemetry::why_text(topology);
  if (options.format == "dot") return telemetry::topology_dot(topology);
  if (options.format == "svg") return telemetry::topology_svg(topology);
  return telemetry::topology_text(topology);
}

}  // namespace

int show_topology(const TopologyOptions& options) {
  const auto known = fetch_topology(options.socket_path, options.why);
  if (!known) {
    complain(known.error().message);
    return kExitFailure;
  }
  return print(drawn(options.sites ? telemetry::by_sites(known.value()) : known.value(), options));
}

}  // namespace gradplane::cli
