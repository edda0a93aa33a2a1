// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "control/plan/planner.h"

namespace gradplane::plan {
namespace {

std::map<api::NodeId, std::vector<std::uint16_t>> ranks_of(
    const std::vector<api::Member>& members) {
  std::map<api::NodeId, std::vector<std::uint16_t>> ranks;
  for (const api::Member& member : members) {
    if (member.ranks.empty()) continue;
    std::vector<std::uint16_t>& of_node = ranks[member.node];
    of_node = member.ranks;
    std::sort(of_node.begin(), of_node.end());
  }
  return ranks;
}

/// A copy of the plan in force for the next epoch, if it has the same ranks and only roots that the
/// request allows.
std::optional<api::Plan> kept(const PlanRequest& request) {
  if (!request.in_force || ranks_of(request.in_force->members) != ranks_of(request.members))
    return std::nullopt;
  const auto is_unwanted = [&request](const api::Tree& tree) {
    const auto& roots = request.root_candidates;
    return !roots.empty() && std::find(roots.begin(), roots.end(), tree.root) == roots.end();
  };
  const auto& trees = request.in_force->trees;
  if (std::any_of(trees.begin(), trees.end(), is_unwanted)) return std::nullopt;
  api::Plan plan = *request.in_force;
  plan.epoch = request.epoch;
  plan.activation_round = request.activation_round;
  return plan;
}

/// Compares plans for one request and keeps the fastest.
class Contest {
 public:
  explicit Contest(const PlanRequest& request)
      : request_(request), network_(*request.network), routes_(network_) {
    request_.auxiliary = false;  // only the winner gets routes, at the end
  }

  void enter(PlanKind kind, const std::vector<api::NodeId>& roots) {
    request_.planner = kind;
    request_.root_candidates = roots;
    Result<api::Plan> plan = make_plan(request_);
    if (!plan.ok()) {
      if (!error_) error_ = plan.error();
      return;
    }
    const std::optional<Duration> time = time_of(plan.value());
    if (!time || (best_ && *time >= time_)) return;
    best_ = std::move(plan.value());
    time_ = *time;
  }

  /// The predicted time of a plan; nothing when two nodes of it do not reach each other.
  std::optional<Duration> time_of(const api::Plan& plan) {
    const Result<Prediction> prediction = predict(routes_, plan, request_.traffic);
    if (prediction.ok()) return prediction.value().time;
    if (!error_) error_ = prediction.error();
    return std::nullopt;
  }

  std::optional<api::Plan>& best() { return best_; }
  Duration time() const { return time_; }
  Error error() const { return error_ ? *error_ : Error{"there is no plan"}; }

 private:
  PlanRequest request_;
  const Network network_;
  Routes routes_;
  std::optional<api::Plan> best_;
  Duration time_;
  std::optional<Error> error_;
};

/// The roots of the stars to compare: those that the request names, else all nodes with ranks and
/// all that may sum. At most kMaxTrees.
std::vector<api::NodeId> star_roots(const PlanRequest& request) {
  std::vector<api::NodeId> roots = request.root_candidates;
  if (roots.empty()) {
    roots = request.summing;
    for (const api::Member& member : request.members)
      if (!member.ranks.empty()) roots.push_back(member.node);
  }
  std::sort(roots.begin(), roots.end());
  roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
  if (roots.size() > kMaxTrees) roots.resize(kMaxTrees);
  return roots;
}

}  // namespace

Result<api::Plan> plan_auto(const PlanRequest& request) {
  if (!request.network) return plan_packed(request).error();  // its error says what is missing
  Contest contest(request);
  contest.enter(PlanKind::kPacked, request.root_candidates);
  contest.enter(PlanKind::kFapt, request.root_candidates);
  contest.enter(PlanKind::kSharded, request.root_candidates);
  if (request.root_candidates.empty() && !request.summing.empty())
    contest.enter(PlanKind::kSharded, request.summing);
  for (const api::NodeId root : star_roots(request)) contest.enter(PlanKind::kStar, {root});
  if (!request.trees.empty()) contest.enter(PlanKind::kManual, {});
  if (!contest.best()) return contest.error();
  std::optional<api::Plan> in_force = kept(request);
  const std::optional<Duration> now = in_force ? contest.time_of(*in_force) : std::nullopt;
  if (!now) return std::move(*contest.best());
  const double worthwhile_s = now->to_seconds() * (1 - kWorthwhileGain);
  if (contest.time().to_seconds() < worthwhile_s) return std::move(*contest.best());
  return std::move(*in_force);
}

}  // namespace gradplane::plan
