// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/planners.h"

#include <algorithm>

#include "control/bounds/policy.h"
#include "control/config/plan_request.h"
#include "control/plan/planner.h"
#include "control/plan/predict.h"
#include "control/plan/validate.h"

namespace gradplane::daemon {
namespace {

/// An operator may make a node a root that hosts ranks of the job, or that offers itself.
Status check_roots(const config::Config& config, const session::PlanInput& input) {
  if (input.choice->kind == PlanKind::kManual)
    return Error{"a manual plan has the roots that plan.trees names; leave --root out"};
  for (const api::NodeId root : input.choice->roots) {
    const bool trains =
        std::any_of(input.members.begin(), input.members.end(),
                    [root](const api::Member& m) { return m.node == root && !m.ranks.empty(); });
    if (trains || config.cluster.nodes[root].aggregate) continue;
    return Error{"node " + config.cluster.nodes[root].name +
                 " hosts no rank of the job and has no aggregate: true in cluster.nodes of the "
                 "coordinator's file; name another root"};
  }
  return Nothing{};
}

}  // namespace

session::Planner planner_of(const config::Config& config) {
  return [request = config::plan_request_of(config),
          config](const session::PlanInput& input) -> Result<api::Plan> {
    plan::PlanRequest filled = request;
    filled.planner = input.choice ? input.choice->kind : config::plan_kind_of(config, input.label);
    if (filled.planner == PlanKind::kManual && filled.trees.empty())
      return Error{"the file of the coordinator has no plan.trees for a manual plan"};
    filled.root_candidates = config::root_candidates(config, filled.planner);
    if (input.choice && !input.choice->roots.empty()) {
      if (const Status good = check_roots(config, input); !good.ok()) return good.error();
      filled.root_candidates = input.choice->roots;
    }
    filled.epoch = input.epoch;
    filled.activation_round = input.activation_round;
    filled.members = input.members;
    filled.in_force = input.in_force;
    if (input.choice) {
      for (const api::NodeId node : input.choice->without) std::erase(filled.summing, node);
    }
    return plan::make_plan(filled);
  };
}

std::function<std::string(const api::Plan&)> plan_note_of(const config::Config& config) {
  const plan::PlanRequest request = config::plan_request_of(config);
  if (!request.network) return {};
  return [network = *request.network, traffic = request.traffic](const api::Plan& plan) {
    const auto prediction = plan::predict(network, plan, traffic);
    return prediction.ok() ? "predicted " + plan::text_of(prediction.value().time) +
                                 " for an all_reduce of " + plan::text_of_bytes(traffic.bytes)
                           : "not predicted: " + prediction.error().message;
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
