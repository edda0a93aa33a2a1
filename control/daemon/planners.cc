// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/planners.h"

#include "control/bounds/policy.h"
#include "control/plan/planner.h"
#include "control/plan/validate.h"

namespace gradplane::daemon {
namespace {

std::vector<api::NodeId> root_candidates(const config::Config& config) {
  if (config.plan.kind == config::PlanKind::kStar) return {config.plan.root};
  std::vector<api::NodeId> roots;
  if (config.plan.roots == config::ShardRoots::kTraining) return roots;  // every node with ranks
  for (std::size_t n = 0; n < config.cluster.nodes.size(); ++n) {
    if (config.cluster.nodes[n].aggregate) roots.push_back(static_cast<api::NodeId>(n));
  }
  return roots;
}

}  // namespace

session::Planner planner_of(const config::Config& config) {
  plan::PlanRequest request;
  request.planner = config.plan.kind == config::PlanKind::kStar ? plan::PlannerKind::kStar
                                                                : plan::PlannerKind::kSharded;
  request.root_candidates = root_candidates(config);
  for (std::size_t n = 0; n < config.cluster.nodes.size(); ++n) {
    const auto rate = config.cluster.nodes[n].port.link_rate_bits_per_s;
    if (rate) request.link_rates.push_back({static_cast<api::NodeId>(n), *rate});
  }
  return [request](const session::PlanInput& input) {
    plan::PlanRequest filled = request;
    filled.epoch = input.epoch;
    filled.activation_round = input.activation_round;
    filled.members = input.members;
    return plan::make_plan(filled);
  };
}

session::BoundsResolver resolver_of(const config::Config& config) {
  const bounds::Rules rules = config.gather.rules;
  const bool all_exact = rules.preset == bounds::Preset::kExact && rules.patterns.empty() &&
                         rules.kinds == decltype(rules.kinds){};
  if (all_exact) return {};
  const bounds::Sizes sizes{.block_bytes = config.block_bytes, .round_bytes = config.round_bytes};
  return [rules, sizes](const std::vector<api::BucketBounds>& tables) {
    session::ResolvedBounds resolved;
    resolved.tables = bounds::resolve(rules, sizes, tables);
    resolved.learn_budget = rules.budget_or_default();
    resolved.summary = bounds::summary(rules, resolved.tables);
    return resolved;
  };
}

Status check_plan(const api::Plan& plan) {
  return plan::validate(plan);
}

}  // namespace gradplane::daemon
