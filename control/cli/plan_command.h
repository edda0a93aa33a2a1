// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>
#include <vector>

#include "control/config/config.h"

namespace gradplane::cli {

struct PlanOptions {
  std::string network_path = {};        // a configuration
  std::string plan = {};                // one of kPlanKindNames; empty: all
  std::string bytes = {};               // with a unit; empty: as the configuration says
  std::vector<std::string> ranks = {};  // names of nodes; empty: those that are no aggregators
  bool brief = false;                   // without the trees and routes
};

/// Prints the plans that planners make for the network of a configuration: predicted times, trees,
/// shares and auxiliary routes. Needs no daemon. Returns an exit code.
int show_plans(const PlanOptions& options);

/// The text that show_plans() prints, or an error that says why there is none.
Result<std::string> plans_text(const config::Config& config, const PlanOptions& options);

}  // namespace gradplane::cli
