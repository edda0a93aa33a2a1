// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/session_config.h"

#include <cstddef>
#include <optional>

#include "control/daemon/placement.h"
#include "control/daemon/planners.h"

namespace gradplane::daemon {
namespace {

std::uint64_t nanoseconds(const std::optional<Duration>& time) {
  return static_cast<std::uint64_t>(time.value_or(Duration()).count_ns());
}

}  // namespace

session::SessionConfig session_config(const config::Config& config, const config::ClusterKey& key,
                                      std::uint64_t incarnation) {
  session::SessionConfig out;
  out.self = config.self;
  out.coordinator = config.cluster.coordinator;
  for (const config::NodeConfig& node : config.cluster.nodes) out.node_names.push_back(node.name);
  out.incarnation = incarnation;
  out.cluster_key = key;
  out.heartbeat = config.liveness.heartbeat;
  out.suspect_after = config.liveness.suspect_after;
  out.quotas = config.quotas;
  const bool selective = config.training.is_selective();
  out.job_settings = {.block_bytes = static_cast<std::uint32_t>(config.block_bytes),
                      .round_bytes = static_cast<std::uint32_t>(config.round_bytes),
                      .authenticate = config.authenticate,
                      .compensation = config.gather.compensation,
                      .strict_rounds = config.gather.strict_rounds,
                      .floor_ppm = config.gather.floor_ppm,
                      .slack_ns = nanoseconds(config.gather.slack),
                      .absent_after_ns = nanoseconds(config.gather.absent_after),
                      .grants = config.grants.enabled,
                      .selections = selective ? config.training.freshness + 1 : 0,
                      .average_every = selective ? config.training.average_every : 0,
                      .staleness = config.training.staleness_steps(),
                      .cores = static_cast<std::uint32_t>(core_count(config))};
  out.grant_exclusion = config.grants.enabled == GrantChoice::kFalse
                            ? "grants.enabled is false"
                            : config::why_no_auto_grants(config);
  out.resolve_bounds = resolver_of(config);
  out.learn_bounds = config.gather.rules.preset == bounds::Preset::kAuto;
  out.redraw = {.enabled = config.plan.redraw.enabled,
                .every = config.plan.redraw.every,
                .gain = config.plan.redraw.gain_ppm / 1e6};
  for (std::size_t n = 0; n < config.cluster.nodes.size(); ++n)
    if (config.cluster.nodes[n].aggregate) out.relays.push_back(static_cast<api::NodeId>(n));
  for (const config::SharedSection& section : config.shared_sections)
    out.shared_sections.emplace_back(section.name, section.digest);
  out.check_plan = check_plan;
  out.elastic = config.elastic;
  return out;
}

}  // namespace gradplane::daemon
