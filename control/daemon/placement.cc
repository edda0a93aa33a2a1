// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/placement.h"

#include <algorithm>

namespace gradplane::daemon {

std::size_t core_count(const config::Config& config) {
  return std::max<std::size_t>(1, config.poll.cores.size());
}

std::optional<std::uint32_t> poll_cpu(const config::Config& config, std::size_t core) {
  return config.poll.cores.empty() ? config.poll.core : std::optional(config.poll.cores[core]);
}

std::string why_one_core(const config::Config& config) {
  // Only one engine, that of queue 0, may grant the capacity of the node's link. With `auto` no job
  // of a node with several cores has grants.
  if (config.grants.enabled == GrantChoice::kTrue) return "grants.enabled is true";
  // Trees do not share the blocks of an exchange: each tree carries all of them.
  if (config.training.is_selective()) return "training.mode is selective";
  // A block may be in another tree, so on another core, in the next round. That core does not have
  // the residual that the first one has kept.
  if (config.gather.compensation == Compensation::kCarry) return "gather.compensation is carry";
  return {};
}

Placement placement_of(const config::Config& config, std::uint32_t job_id) {
  const std::size_t cores = core_count(config);
  if (why_one_core(config).empty()) return {.first = 0, .count = cores};
  const bool grants = config.grants.enabled == GrantChoice::kTrue;
  return {.first = grants ? 0 : job_id % cores, .count = 1};
}

}  // namespace gradplane::daemon
