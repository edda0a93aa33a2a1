// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// What the file says of single jobs, by their names.
#include "control/bounds/names.h"
#include "control/config/config.h"

namespace gradplane::config {

CongestionSettings congestion_of(const Config& config, std::string_view job) {
  CongestionSettings settings = config.congestion;
  for (const JobController& line : config.job_controllers) {
    if (!bounds::matches(line.pattern, job)) continue;
    settings.controller = line.controller;
    break;
  }
  // MLTCP multiplies the increase of a controller, and `fixed` has none.
  if (config.mltcp_controllers && settings.controller != ControllerKind::kFixed) {
    settings.mltcp = config.mltcp;
  }
  return settings;
}

PlanKind plan_kind_of(const Config& config, std::string_view job) {
  for (const JobPlan& line : config.plan.jobs) {
    if (bounds::matches(line.pattern, job)) return line.kind;
  }
  return config.plan.kind;
}

double weight_of(const Config& config, std::string_view job) {
  for (const GrantsConfig::Weight& line : config.grants.weights) {
    if (bounds::matches(line.pattern, job)) return line.weight;
  }
  return 1;
}

}  // namespace gradplane::config
