// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/planners.h"

#include <algorithm>

#include "control/bounds/policy.h"
#include "control/plan/planner.h"
#include "control/plan/validate.h"

namespace gradplane::daemon {
namespace {

/// Of a plan of this kind, which need not be the configuration's own. None: every node with ranks.
std::vector<api::NodeId> root_candidates(const config::Config& config, PlanKind kind) {
  if (kind == PlanKind::kStar && config.plan.root != api::kNoNode) return {config.plan.root};
  std::vector<api::NodeId> roots;
  const bool training = config.plan.roots == config::ShardRoots::kTraining;
  if (kind == PlanKind::kSharded && training) return roots;
  for (std::size_t n = 0; n < config.cluster.nodes.size(); ++n) {
    if (config.cluster.nodes[n].aggregate) roots.push_back(static_cast<api::NodeId>(n));
  }
  return roots;
}

std::vector<plan::ManualTree> manual_trees(const config::Config& config) {
  std::vector<plan::ManualTree> trees;
  for (const config::PlanTree& tree : config.plan.trees) {
    plan::ManualTree& out = trees.emplace_back();
    out.weight = tree.weight;
    out.root = tree.root;
    for (const auto& [node, parent] : tree.parents) out.edges.push_back({node, parent});
  }
  return trees;
}

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
  plan::PlanRequest request;
  request.trees = manual_trees(config);
  for (std::size_t n = 0; n < config.cluster.nodes.size(); ++n) {
    request.node_names.push_back(config.cluster.nodes[n].name);
    const auto rate = config.cluster.nodes[n].port.link_rate_bits_per_s;
    if (rate) request.link_rates.push_back({static_cast<api::NodeId>(n), *rate});
  }
  return [request, config](const session::PlanInput& input) -> Result<api::Plan> {
    plan::PlanRequest filled = request;
    filled.planner = input.choice ? input.choice->kind : config.plan.kind;
    if (filled.planner == PlanKind::kManual && filled.trees.empty())
      return Error{"the file of the coordinator has no plan.trees for a manual plan"};
    filled.root_candidates = root_candidates(config, filled.planner);
    if (input.choice && !input.choice->roots.empty()) {
      if (const Status good = check_roots(config, input); !good.ok()) return good.error();
      filled.root_candidates = input.choice->roots;
    }
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
