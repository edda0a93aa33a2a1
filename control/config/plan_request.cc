// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/config/plan_request.h"

#include "control/plan/selections.h"
#include "dataplane/model/limits.h"

namespace gradplane::config {
namespace {

std::vector<api::NodeId> aggregators_of(const Config& config) {
  std::vector<api::NodeId> nodes;
  for (std::size_t n = 0; n < config.cluster.nodes.size(); ++n) {
    if (config.cluster.nodes[n].aggregate) nodes.push_back(static_cast<api::NodeId>(n));
  }
  return nodes;
}

}  // namespace

plan::PlanRequest plan_request_of(const Config& config) {
  plan::PlanRequest request;
  for (const PlanTree& tree : config.plan.trees) {
    plan::ManualTree& out = request.trees.emplace_back();
    out.weight = tree.weight;
    out.root = tree.root;
    for (const auto& [node, parent] : tree.parents) out.edges.push_back({node, parent});
  }
  for (std::size_t n = 0; n < config.cluster.nodes.size(); ++n) {
    request.node_names.push_back(config.cluster.nodes[n].name);
    const auto rate = config.cluster.nodes[n].port.link_rate_bits_per_s;
    if (rate) request.link_rates.push_back({static_cast<api::NodeId>(n), *rate});
  }
  request.summing = aggregators_of(config);
  request.network = config.network.network;
  request.auxiliary = config.plan.auxiliary;
  const TrainingConfig& training = config.training;
  if (training.is_selective()) {
    using Choice = plan::SelectionsWanted::Choice;
    request.selections = plan::SelectionsWanted{
        .receivers_ppm = training.receivers_ppm,
        .freshness = training.freshness,
        .choice =
            training.selection == ReceiverSelection::kRandom ? Choice::kRandom : Choice::kLinks};
  }
  request.traffic.bytes = config.network.bytes;
  request.traffic.block_bytes = config.block_bytes;
  request.traffic.window_bytes = kMaxInFlightRounds * config.round_bytes;
  return request;
}

bool plan_follows_network(const Config& config, PlanKind kind) {
  const auto selections = plan_request_of(config).selections;
  const bool has_selections = selections && plan::selections_follow_network(*selections);
  return has_selections || plan_needs_network(kind);
}

std::vector<api::NodeId> root_candidates(const Config& config, PlanKind kind) {
  if (plan_needs_network(kind)) return {};
  if (kind == PlanKind::kStar && config.plan.root != api::kNoNode) return {config.plan.root};
  if (kind == PlanKind::kSharded && config.plan.roots == ShardRoots::kTraining) return {};
  return aggregators_of(config);
}

}  // namespace gradplane::config
