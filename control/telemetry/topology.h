// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/telemetry/status.h"
#include "dataplane/base/result.h"

/// The measured graph of nodes and the trees in force over it, as plain values that a daemon fills,
/// and the functions that draw them. Control thread only.
namespace gradplane::telemetry {

inline constexpr std::uint32_t kTopologyVersion = 1;
/// The most links that a topology names; others are only counted.
inline constexpr std::size_t kMaxTopologyLinks = 4 * kMaxNodes;
inline constexpr std::size_t kMaxTopologyPlanners = 16;
/// The colours of trees, in turn. People who are colour-blind can tell them apart, too (Okabe and
/// Ito).
inline constexpr std::array<std::string_view, 7> kTreeColors = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"};
inline constexpr std::string_view kLinkColor = "#999999";

struct TopologyNode {
  std::string name;
  std::string site;  // empty: the node is a site of its own

  const std::string& place() const { return site.empty() ? name : site; }
};

/// A measured directed link. `measured.node` is where it begins.
struct TopologyLink {
  std::string to;
  LinkStatus measured;
};

struct TopologyEdge {
  std::string from;
  std::string to;  // the parent: pushes go to it, results come from it
};

struct TopologyTree {
  std::uint32_t weight = 1;  // its share of the blocks is this over the sum of all weights
  std::string root;
  std::vector<TopologyEdge> edges;
};

/// What a planner would make for a job.
struct TopologyPlan {
  std::string planner;
  std::uint64_t predicted_ns = 0;  // of the job's operation; 0: it has no plan
  std::string why;                 // what takes longest, or why it has no plan
};

struct TopologyJob {
  std::uint32_t id = 0;
  std::string label;
  std::string plan_kind;
  std::uint32_t epoch = 0;
  std::string next_kind;  // of a plan that is committed for future rounds; empty: there is none
  std::uint32_t next_epoch = 0;
  std::uint32_t next_round = 0;     // the first round of that plan
  std::vector<TopologyTree> trees;  // of the plan in force
  std::uint32_t trees_omitted = 0;
  // The rest answers the question why, and is empty if that was not asked: the prediction for the
  // plan in force, the plans of all planners, and when another plan is worth a switch.
  std::uint64_t predicted_ns = 0;
  std::string bottleneck;
  std::uint64_t traffic_bytes = 0;  // of the all_reduce or exchange that is predicted
  bool exchanges = false;           // whether it is an exchange
  std::uint32_t gain_needed_percent = 0;
  std::string planner;   // the planner of the job; empty: not known
  std::string decision;  // what the coordinator decided last about the plan; empty: nothing
  std::uint64_t decision_age_ns = 0;
  std::vector<std::string> roots;  // those that an operator allows in its plans; empty: any
  std::string not_redrawn;         // why no change of the network leads to a redraw; empty: one may
  std::vector<TopologyPlan> plans;
  std::string not_compared;  // why the planners were not compared
};

/// A link between two sites, as planners use it.
struct TopologyUse {
  std::string from;
  std::string to;
  std::uint64_t bits_per_second = 0;
  std::uint64_t configured_bits_per_second = 0;  // 0: the file does not have the link
  /// The sample between nodes of these sites. `node` is the node that has reported it; empty: there
  /// is none.
  LinkStatus measured;
};

struct Topology {
  std::uint32_t version = kTopologyVersion;
  std::string node;  // the node that knows this
  std::vector<TopologyNode> nodes;
  std::uint32_t nodes_omitted = 0;
  std::vector<TopologyLink> links;
  std::uint32_t links_omitted = 0;
  std::vector<TopologyJob> jobs;
  // The links as planners use them; only in an answer to the question why.
  std::vector<TopologyUse> uses;
  std::uint32_t uses_omitted = 0;
};

/// The share of the blocks that a tree of a job carries, from 0 to 1.
double share_of(const TopologyJob& job, const TopologyTree& tree);

/// One JSON object of at most `max_bytes` (0: no limit). To make it fit, trees and links are left
/// out evenly, and nodes when none of these is left; *_omitted counts them.
std::string to_json(const Topology& topology, std::size_t max_bytes = 0);
/// Reads a topology from untrusted JSON; see from_json() of a status.
Result<Topology> topology_from_json(std::string_view text);

/// The same with one place for each site. Of several links between two sites the fastest one stays,
/// and links and edges inside a site are left out.
Topology by_sites(const Topology& topology);

/// Text for a person: the measured links, and the trees of each job.
std::string topology_text(const Topology& topology);
/// Text for a person: why each job has its plan and no other one.
std::string why_text(const Topology& topology);
/// A graph for graphviz, where links are grey and each tree has a colour.
std::string topology_dot(const Topology& topology);
/// A picture in SVG: places on a circle, links between them with their rates, trees in colours, and
/// a legend with shares, ages and confidences.
std::string topology_svg(const Topology& topology);

}  // namespace gradplane::telemetry
