// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/planners.h"

#include <algorithm>

#include "control/bounds/policy.h"
#include "control/config/plan_request.h"
#include "control/plan/measured.h"
#include "control/plan/planner.h"
#include "control/plan/predict.h"
#include "control/plan/selections.h"
#include "control/plan/validate.h"

namespace gradplane::daemon {
namespace {

/// Checks the roots that an operator has asked for: each must host ranks of the job, or have
/// aggregate: true.
Status check_roots(const config::Config& config, const session::PlanInput& input) {
  if (input.choice->kind == PlanKind::kManual)
    return Error{"a manual plan has the roots that plan.trees names; leave --root out"};
  for (const api::NodeId root : input.choice->roots) {
    if (root >= config.cluster.nodes.size())
      return Error{"there is no node " + std::to_string(root) +
                   " in cluster.nodes of the coordinator's file; name another root"};
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

/// A switch costs as much time as this many rounds of the next plan take, because rounds wait for
/// each other at the activation (measured by `simulate flips`).
constexpr double kSwitchRounds = 3;

/// Leaves out nodes that do not answer, unless no others remain.
void leave_out(std::vector<api::NodeId>& nodes, const std::vector<api::NodeId>& silent) {
  std::vector<api::NodeId> answering = nodes;
  std::erase_if(answering, [&silent](api::NodeId node) {
    return std::find(silent.begin(), silent.end(), node) != silent.end();
  });
  if (!answering.empty()) nodes = std::move(answering);
}

Result<plan::PlanRequest> request_of(const config::Config& config, const plan::PlanRequest& common,
                                     const session::PlanInput& input) {
  plan::PlanRequest filled = common;
  filled.planner = input.choice ? input.choice->kind : config::plan_kind_of(config, input.label);
  if (filled.planner == PlanKind::kManual && filled.trees.empty())
    return Error{"the file of the coordinator has no plan.trees for a manual plan"};
  filled.root_candidates = config::root_candidates(config, filled.planner);
  const bool named = input.choice && !input.choice->roots.empty();
  if (named) {
    if (const Status good = check_roots(config, input); !good.ok()) return good.error();
    filled.root_candidates = input.choice->roots;
  } else {
    leave_out(filled.root_candidates, input.silent);
  }
  filled.epoch = input.epoch;
  filled.activation_round = input.activation_round;
  filled.members = input.members;
  if (!input.redraw) filled.in_force = input.in_force;
  for (const api::NodeId node : input.silent) std::erase(filled.summing, node);
  if (input.choice) {
    for (const api::NodeId node : input.choice->without) std::erase(filled.summing, node);
  }
  filled.network_is_of_file = common.network.has_value();
  filled.network = plan::measured_network(common.network, common.node_names, input.links);
  filled.samples = input.links;
  filled.sampled_under = input.in_force;
  filled.sampled_for = input.in_force_for;
  return filled;
}

std::string note_of(Duration time, const char* operation, const plan::Traffic& traffic) {
  return "predicted " + plan::text_of(time) + " for an " + operation + " of " +
         plan::text_of_bytes(traffic.bytes);
}

std::string note_of(const plan::Prediction& prediction, const plan::Traffic& traffic) {
  return note_of(prediction.time, "all_reduce", traffic);
}

/// Sets the price of a switch. `offer.time` is the predicted time of one operation of `traffic`.
void set_price(const config::Config& config, const plan::Traffic& traffic,
               session::PlanOffer& offer) {
  const double rounds = static_cast<double>(traffic.bytes) /
                        static_cast<double>(std::max<std::size_t>(config.round_bytes, 1));
  const double one_s = offer.time->to_seconds() / std::max(rounds, 1.0);
  offer.switch_price = Duration::us(static_cast<std::int64_t>(one_s * kSwitchRounds * 1e6));
}

/// Sets the predicted times to those of exchanges, because nearly all rounds of a job with
/// selections are exchanges.
void predict_exchanges(const config::Config& config, const plan::PlanRequest& filled,
                       const std::optional<api::Plan>& in_force, session::PlanOffer& offer) {
  const auto prediction = plan::predict_exchanges(offer.plan, filled);
  if (!prediction) return;
  offer.time = prediction->time;
  offer.note = note_of(prediction->time, "exchange", filled.traffic);
  offer.is_early = !prediction->is_measured;
  if (in_force) {
    const auto before = plan::predict_exchanges(*in_force, filled);
    if (before) offer.time_in_force = before->time;
    if (before) offer.note_in_force = "now " + note_of(before->time, "exchange", filled.traffic);
  }
  set_price(config, filled.traffic, offer);
}

void predict(const config::Config& config, const plan::PlanRequest& filled,
             const std::optional<api::Plan>& in_force, session::PlanOffer& offer) {
  if (filled.selections) return predict_exchanges(config, filled, in_force, offer);
  if (!filled.network) return;
  const auto prediction = plan::predict(*filled.network, offer.plan, filled.traffic);
  offer.note = prediction.ok() ? note_of(prediction.value(), filled.traffic)
                               : "not predicted: " + prediction.error().message;
  if (!prediction.ok()) return;
  offer.time = prediction.value().time;
  if (in_force) {
    const auto before = plan::predict(*filled.network, *in_force, filled.traffic);
    if (before.ok()) offer.time_in_force = before.value().time;
    offer.note_in_force = before.ok() ? "now " + note_of(before.value(), filled.traffic)
                                      : "not predicted: " + before.error().message;
  }
  set_price(config, filled.traffic, offer);
}

}  // namespace

session::Planner planner_of(const config::Config& config) {
  return [common = config::plan_request_of(config),
          config](const session::PlanInput& input) -> Result<session::PlanOffer> {
    const Result<plan::PlanRequest> filled = request_of(config, common, input);
    if (!filled.ok()) return filled.error();
    Result<api::Plan> plan = plan::make_plan(filled.value());
    if (!plan.ok()) return plan.error();
    session::PlanOffer offer{.plan = std::move(plan.value()), .planner = filled.value().planner};
    offer.follows_network = config::plan_follows_network(config, offer.planner);
    predict(config, filled.value(), input.in_force, offer);
    return offer;
  };
}

session::BoundsResolver resolver_of(const config::Config& config) {
  const bounds::Rules rules = config.gather.rules;
  const bool all_exact = rules.preset == bounds::Preset::kExact && rules.patterns.empty() &&
                         rules.kinds == decltype(rules.kinds){} && rules.wire_types.empty();
  // Under bounded staleness an exact bucket, too, must be installed: it needs memory for its inbox.
  if (all_exact && config.training.staleness_steps() == 0) return {};
  const bounds::Sizes sizes{.block_bytes = config.block_bytes, .round_bytes = config.round_bytes};
  return [rules, sizes](const std::vector<api::BucketBounds>& tables) {
    session::ResolvedBounds resolved;
    resolved.tables = bounds::resolve(rules, sizes, tables);
    resolved.learn_budget = rules.budget_or_default();
    resolved.texts = {.summary = bounds::summary(rules, resolved.tables),
                      .warning = bounds::unused_patterns(rules, resolved.tables)};
    return resolved;
  };
}

Status check_plan(const api::Plan& plan) {
  return plan::validate(plan);
}

}  // namespace gradplane::daemon
