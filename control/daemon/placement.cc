// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/placement.h"

#include <algorithm>

namespace gradplane::daemon {

std::size_t core_count(const config::Config& config) {
  return std::max<std::size_t>(1, config.poll.cores.size());
}

std::string why_one_core(const config::Config& config) {
  // The engine of queue 0 alone knows what it has granted of the downlink.
  if (config.grants.enabled) return "grants.enabled is true";
  // Each tree has all blocks of an exchange.
  if (config.training.is_selective()) return "training.mode is selective";
  // Blocks change their tree from round to round, and what one core has kept of a block would have
  // to be added by another one.
  if (config.gather.compensation == Compensation::kCarry) return "gather.compensation is carry";
  return {};
}

Placement placement_of(const config::Config& config, std::uint32_t job_id) {
  const std::size_t cores = core_count(config);
  if (why_one_core(config).empty()) return {.first = 0, .count = cores};
  return {.first = config.grants.enabled ? 0 : job_id % cores, .count = 1};
}

}  // namespace gradplane::daemon
