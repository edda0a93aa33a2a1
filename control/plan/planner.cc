// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/planner.h"

#include <algorithm>
#include <numeric>

#include "control/plan/auxiliary.h"
#include "control/plan/selections.h"
#include "control/plan/soundings.h"
#include "control/plan/validate.h"
#include "dataplane/model/limits.h"

namespace gradplane::plan {
namespace {

/// The weight of the fastest root before common factors are taken out.
constexpr std::uint64_t kWeightScale = 1000;
/// Rates are at most kMaxBitsPerSecond, so the product with the scale fits 64 bits.
static_assert(kMaxBitsPerSecond <= UINT64_MAX / kWeightScale);

struct Root {
  api::NodeId node;
  std::uint64_t bits_per_s;
};

/// The candidates without repetition, the fastest first. Equally fast ones are in order of nodes.
std::vector<Root> ranked_roots(const PlanRequest& request) {
  std::vector<api::NodeId> nodes = request.root_candidates;
  if (nodes.empty()) {
    for (const api::Member& member : request.members) {
      if (!member.ranks.empty()) nodes.push_back(member.node);
    }
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::vector<Root> roots;
  for (const api::NodeId node : nodes) roots.push_back({node, rate_of(request, node)});
  std::stable_sort(roots.begin(), roots.end(),
                   [](const Root& a, const Root& b) { return a.bits_per_s > b.bits_per_s; });
  return roots;
}

/// The members with ranks and those that are roots, by node.
std::vector<api::Member> members_with(const PlanRequest& request, const std::vector<Root>& roots) {
  std::vector<api::Member> members;
  for (const api::Member& member : request.members) {
    if (member.ranks.empty()) continue;
    members.push_back(member);
    std::sort(members.back().ranks.begin(), members.back().ranks.end());
  }
  for (const Root& root : roots) {
    const bool known = std::any_of(members.begin(), members.end(), [&root](const auto& member) {
      return member.node == root.node;
    });
    if (!known) members.push_back({root.node, {}});
  }
  std::sort(members.begin(), members.end(),
            [](const auto& a, const auto& b) { return a.node < b.node; });
  return members;
}

/// A tree in which every member that hosts ranks is a child of the root. Other roots without ranks
/// are left out, because they have nothing to send.
api::Tree one_level_tree(const std::vector<api::Member>& members, api::NodeId root,
                         std::uint32_t weight) {
  api::Tree tree{weight, root, {}};
  tree.parent.reserve(members.size());
  for (const api::Member& member : members) {
    const bool sends = member.node != root && !member.ranks.empty();
    tree.parent.push_back(sends ? root : api::kNoNode);
  }
  return tree;
}

/// Weights in proportion to the rates, without a common factor. The first root is the fastest.
std::vector<std::uint32_t> weights_of(const std::vector<Root>& roots) {
  std::vector<std::uint32_t> weights;
  std::uint32_t common = 0;
  for (const Root& root : roots) {
    const std::uint64_t fastest = roots.front().bits_per_s;
    const std::uint64_t rounded = (root.bits_per_s * kWeightScale + fastest / 2) / fastest;
    weights.push_back(static_cast<std::uint32_t>(std::max<std::uint64_t>(rounded, 1)));
    common = std::gcd(common, weights.back());
  }
  for (std::uint32_t& weight : weights) weight /= common;
  return weights;
}

Result<api::Plan> plan_over(const PlanRequest& request, PlanKind kind, std::vector<Root> roots) {
  if (roots.empty()) return Error{"no node hosts a rank of the job; there is nothing to plan"};
  const std::vector<std::uint32_t> weights = weights_of(roots);
  api::Plan plan{request.epoch, request.activation_round, members_with(request, roots), {}, kind};
  for (std::size_t i = 0; i < roots.size(); ++i) {
    plan.trees.push_back(one_level_tree(plan.members, roots[i].node, weights[i]));
  }
  std::sort(plan.trees.begin(), plan.trees.end(),
            [](const auto& a, const auto& b) { return a.root < b.root; });
  if (Status status = validate(plan); !status.ok()) return status.error();
  return plan;
}

}  // namespace

Result<api::Plan> plan_star(const PlanRequest& request) {
  std::vector<Root> roots = ranked_roots(request);
  if (roots.size() > 1) roots.resize(1, roots.front());
  return plan_over(request, PlanKind::kStar, std::move(roots));
}

Result<api::Plan> plan_sharded(const PlanRequest& request) {
  std::vector<Root> roots = ranked_roots(request);
  if (roots.size() > kMaxTrees) roots.resize(kMaxTrees, roots.front());
  return plan_over(request, PlanKind::kSharded, std::move(roots));
}

namespace {

Result<api::Plan> plan_trees(const PlanRequest& request) {
  switch (request.planner) {
    case PlanKind::kStar:
      return plan_star(request);
    case PlanKind::kSharded:
      return plan_sharded(request);
    case PlanKind::kManual:
      return plan_manual(request);
    case PlanKind::kFapt:
      return plan_fapt(request);
    case PlanKind::kPacked:
      return plan_packed(request);
    case PlanKind::kAuto:
      return plan_auto(request);
  }
  return Error{"there is no such planner"};
}

}  // namespace

Result<api::Plan> make_plan(const PlanRequest& request) {
  if (const Status good = check_for_selections(request); !good.ok()) return good.error();
  Result<api::Plan> plan = plan_trees(request);
  if (!plan.ok()) return plan;
  plan.value().routes.clear();  // a plan in force that stays has these three already
  plan.value().soundings.clear();
  plan.value().selections.clear();
  if (request.selections) add_selections(plan.value(), request);
  if (!request.network) return plan;
  if (request.auxiliary) add_auxiliary_routes(plan.value(), *request.network);
  if (plan_needs_network(request.planner)) add_soundings(plan.value(), *request.network);
  return plan;
}

Result<PlannedTime> make_predicted_plan(const PlanRequest& request) {
  Result<api::Plan> plan = make_plan(request);
  if (!plan.ok()) return plan.error();
  PlannedTime planned{std::move(plan.value()), std::nullopt};
  if (!request.network) return planned;
  Result<Prediction> prediction = predict(*request.network, planned.plan, request.traffic);
  if (!prediction.ok()) return prediction.error();
  planned.prediction = std::move(prediction.value());
  return planned;
}

std::uint64_t rate_of(const PlanRequest& request, api::NodeId node) {
  std::uint64_t slowest = kMaxBitsPerSecond;
  for (const LinkRate& rate : request.link_rates) {
    if (rate.bits_per_s == 0) continue;
    if (rate.node == node) return std::min(rate.bits_per_s, kMaxBitsPerSecond);
    slowest = std::min(slowest, rate.bits_per_s);
  }
  return slowest;
}

std::string node_text(const PlanRequest& request, api::NodeId node) {
  const auto& names = request.node_names;
  return "node " + (node < names.size() ? names[node] : std::to_string(node));
}

}  // namespace gradplane::plan
