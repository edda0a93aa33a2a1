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

/// Planners decide which nodes sum which blocks. They are pure: the same request gives the same
/// plan, whatever the order of its members, candidates and rates. All their plans pass validate().
namespace gradplane::plan {

/// How much an all_reduce carries if the configuration does not say: the gradients of ResNet-50 in
/// fp32.
inline constexpr std::uint64_t kDefaultTrafficBytes = 98'000'000;

/// The configured or measured rate of a node's link to the network.
struct LinkRate {
  api::NodeId node = api::kNoNode;
  std::uint64_t bits_per_s = 0;
};

/// A tree of the configuration, as pairs of a node and its parent. Nodes in no pair are not in it.
struct ManualTree {
  std::uint32_t weight = 1;
  api::NodeId root = api::kNoNode;
  struct Edge {
    api::NodeId node = api::kNoNode;
    api::NodeId parent = api::kNoNode;
  };
  std::vector<Edge> edges;
};

/// Which selections a plan gets, for training in which each rank sends its update only to some of
/// the others (docs/selective.md).
struct SelectionsWanted {
  enum class Choice : std::uint8_t {
    kLinks,   // so that the load on the links is even
    kRandom,  // at random, whatever the links (Orpheus); for comparison
  };
  /// The smallest share of the other ranks that receives each update, in millionths: 1 to 1000000.
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
  /// A node without a rate counts as the slowest node that has one. Without any, all are equal.
  std::vector<LinkRate> link_rates;
  /// The trees of a manual plan.
  std::vector<ManualTree> trees = {};
  /// Names for messages, by node. Nodes after the last one go by their numbers.
  std::vector<std::string> node_names = {};
  /// A valid network, which fapt, packed and auto need.
  std::optional<Network> network = {};
  /// Whether the accesses of the network are those of the file. Otherwise they may be measured.
  bool network_is_of_file = true;
  /// The all_reduce for which planners predict times.
  Traffic traffic = {.bytes = kDefaultTrafficBytes};
  /// Nodes without ranks that may sum, for fapt and packed. Nodes with ranks always may.
  std::vector<api::NodeId> summing = {};
  /// The plan that the job has now, for auto.
  std::optional<api::Plan> in_force = {};
  /// Whether the plan gets auxiliary routes where the network is known.
  bool auxiliary = false;
  /// The selections of the plan; none: it gets none. Only plan_sharded() over all members has the
  /// trees for them.
  std::optional<SelectionsWanted> selections = {};
  /// What receivers have measured of links. Only selections use it: `network` has it already.
  std::vector<protocol::LinkSample> samples = {};
  /// The plan under which the samples were taken, and for how long no other plan has had open
  /// rounds.
  std::optional<api::Plan> sampled_under = {};
  Duration sampled_for = {};
};

/// A plan, and the predicted time of an all_reduce under it if the network is known.
struct PlannedTime {
  api::Plan plan;
  std::optional<Prediction> prediction;
};

/// The plan of the requested kind. The error says why there is none.
Result<api::Plan> make_plan(const PlanRequest& request);

/// The same with its prediction.
Result<PlannedTime> make_predicted_plan(const PlanRequest& request);

/// A node in messages: "node paris0", or with its number if it has no name.
std::string node_text(const PlanRequest& request, api::NodeId node);

/// The rate of a node's link, or of the slowest link if that is unknown. At most kMaxBitsPerSecond.
std::uint64_t rate_of(const PlanRequest& request, api::NodeId node);

/// One tree. Its root is the candidate with the fastest link; of equal ones, the lowest node.
Result<api::Plan> plan_star(const PlanRequest& request);

/// One tree for each candidate (the kMaxTrees fastest), weighted by its link rate to a thousandth
/// of the fastest.
Result<api::Plan> plan_sharded(const PlanRequest& request);

/// NetStorm's plan, for comparison (IEEE/ACM ToN 2024; as in its authors' code). There is one tree
/// for each root: the cheapest ways from every site to it, where a link costs 1/rate. The shares
/// are NetStorm's: proportional to 1 / (the sum over the levels of a tree of the largest cost in
/// the level), with the rates away from the root. If there are more roots than a plan may have
/// trees, the trees with the largest shares stay. Round trips and loss do not count.
Result<api::Plan> plan_fapt(const PlanRequest& request);

/// Several spanning trees over the sites. They are chosen together so that the busiest link, access
/// or node is least busy, and are only as high as that gains time: docs/decisions/0016 says how.
/// Each tree leaves a site through one node, to which the site's other nodes send. The plan is
/// within 1.25 of packing_bound_s_per_bit() on the networks of the tests. On a full mesh of a
/// hundred sites this holds only if round trips are short. With long ones lower trees are predicted
/// to be faster, because the number of open rounds of a job is limited.
Result<api::Plan> plan_packed(const PlanRequest& request);

/// The plan of the other planners with the least predicted time. The plan in force stays if it has
/// the same ranks and no other one is better by kWorthwhileGain.
Result<api::Plan> plan_auto(const PlanRequest& request);
/// The share of the predicted time that another plan must gain, because a switch costs time and
/// predictions are not exact.
inline constexpr double kWorthwhileGain = 0.10;

/// The given trees, without the nodes that have no rank of this job on them or below them. Fails
/// where a tree leaves out a node with ranks or is no tree.
Result<api::Plan> plan_manual(const PlanRequest& request);

}  // namespace gradplane::plan
