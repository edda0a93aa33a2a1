// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/plan/network.h"
#include "control/plan/predict.h"
#include "control/plan/selection.h"
#include "control/protocol/link_sample.h"
#include "dataplane/api/plan.h"
#include "dataplane/base/result.h"
#include "dataplane/base/time.h"

/// Who sums what where. Planners are pure: the same request gives the same plan, whatever the order
/// in which members, candidates and rates are listed. Every plan that they give passes validate().
namespace gradplane::plan {

/// What planners count on when nobody says how much an all_reduce carries: the gradients of
/// ResNet-50 in fp32.
inline constexpr std::uint64_t kDefaultTrafficBytes = 98'000'000;

/// The configured or measured rate of a node's link to the network.
struct LinkRate {
  api::NodeId node = api::kNoNode;
  std::uint64_t bits_per_s = 0;
};

/// A tree as somebody wrote it down: who sends to whom. Who is in none of the pairs is not in it.
struct ManualTree {
  std::uint32_t weight = 1;
  api::NodeId root = api::kNoNode;
  struct Edge {
    api::NodeId node = api::kNoNode;
    api::NodeId parent = api::kNoNode;
  };
  std::vector<Edge> edges;
};

/// Who receives whose update, for training in which each rank sends its update to some of the
/// others only (docs/selective.md).
struct SelectionsWanted {
  enum class Choice : std::uint8_t {
    kLinks,   // so that the links are used evenly
    kRandom,  // at random (Orpheus), which knows no links; for comparison
  };
  /// Least share of the other ranks that receive each update, in millionths: 1 to a whole.
  std::uint32_t receivers_ppm = 0;
  /// Each pair meets at least once in any freshness + 1 steps. Less than kMaxSelections.
  std::uint32_t freshness = 0;
  Replication replication = Replication::kSender;
  Choice choice = Choice::kLinks;
};

/// What a planner knows.
struct PlanRequest {
  std::uint32_t epoch = 0;
  std::uint32_t activation_round = 0;
  /// The nodes that host ranks.
  std::vector<api::Member> members;
  PlanKind planner = PlanKind::kStar;
  /// Nodes that may be roots, whether they host ranks or not. None: every node that hosts ranks.
  std::vector<api::NodeId> root_candidates;
  /// A node without a rate counts as slow as the slowest that has one; without any, all are equal.
  std::vector<LinkRate> link_rates;
  /// Of a manual plan.
  std::vector<ManualTree> trees = {};
  /// For messages to people, by node; a node beyond is called by its number.
  std::vector<std::string> node_names = {};
  /// What fapt, packed and auto need. Valid.
  std::optional<Network> network = {};
  /// Its accesses are what the file says. Where the file says nothing, they may be measured.
  bool network_is_of_file = true;
  /// What the planners that predict make their plans for.
  Traffic traffic = {.bytes = kDefaultTrafficBytes};
  /// Nodes without ranks that may sum, for fapt and packed. Those with ranks may anyway.
  std::vector<api::NodeId> summing = {};
  /// What the job has now, for auto.
  std::optional<api::Plan> in_force = {};
  /// Whether the plan gets auxiliary routes where the network is known.
  bool auxiliary = false;
  /// The plan gets selections. Only plan_sharded() over all members has the trees for them.
  std::optional<SelectionsWanted> selections = {};
  /// What receivers have measured of links, for selections; `network` holds it already.
  std::vector<protocol::LinkSample> samples = {};
  /// The plan under which they measure, and for how long no other one has had open rounds.
  std::optional<api::Plan> sampled_under = {};
  Duration sampled_for = {};
};

/// A plan, and how long an all_reduce takes under it where the network is known.
struct PlannedTime {
  api::Plan plan;
  std::optional<Prediction> prediction;
};

/// The plan of the requested kind. Fails, saying why, when the members make no job.
Result<api::Plan> make_plan(const PlanRequest& request);

/// The same with its prediction.
Result<PlannedTime> make_predicted_plan(const PlanRequest& request);

/// As messages call a node.
std::string node_text(const PlanRequest& request, api::NodeId node);

/// That of a node's link, or of the slowest that is known; at most kMaxBitsPerSecond.
std::uint64_t rate_of(const PlanRequest& request, api::NodeId node);

/// One tree. Its root is the candidate with the fastest link; of equal ones, the lowest node.
Result<api::Plan> plan_star(const PlanRequest& request);

/// One tree for each candidate (the kMaxTrees fastest), weighted by its link rate to a thousandth
/// of the fastest.
Result<api::Plan> plan_sharded(const PlanRequest& request);

/// NetStorm's plan, for comparison (IEEE/ACM ToN 2024; as its authors' code has it). For each root
/// the cheapest way of every site to it, where a link costs 1/rate: one tree for each root. The
/// shares are NetStorm's: proportional to 1 / (the sum over the levels of a tree of the largest
/// cost in the level), with the rates away from the root. With more roots than a plan has trees,
/// those with the largest shares. Neither round trips nor loss count.
Result<api::Plan> plan_fapt(const PlanRequest& request);

/// Several spanning trees over the sites, chosen together so that the busiest link, access or node
/// is least busy, and not higher than pays: docs/decisions/0016 says how. Each tree leaves a site
/// through one node, to which the site's other nodes send. It is within 1.25 of packing_bound() on
/// the networks of the tests. On a full mesh of links of a hundred sites it is so where round trips
/// are short; with long ones lower trees are predicted to be faster, because a job has so many
/// rounds open and no more.
Result<api::Plan> plan_packed(const PlanRequest& request);

/// Of all other plans the one with the least predicted time. The plan in force stays if it has the
/// same ranks and no other one is better by kWorthwhileGain.
Result<api::Plan> plan_auto(const PlanRequest& request);
/// A switch costs rounds of two plans side by side, and predictions are not exact.
inline constexpr double kWorthwhileGain = 0.10;

/// The given trees, without the nodes that have no rank of this job on them or below them. Fails
/// where a tree leaves out a node with ranks or is no tree.
Result<api::Plan> plan_manual(const PlanRequest& request);

}  // namespace gradplane::plan
