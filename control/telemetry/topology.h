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

/// The measured graph of nodes and the trees in force over it: plain values that a daemon fills,
/// and how they are drawn. Control thread only.
namespace gradplane::telemetry {

inline constexpr std::uint32_t kTopologyVersion = 1;
/// Links that a topology names; more are counted.
inline constexpr std::size_t kMaxTopologyLinks = 4 * kMaxNodes;
inline constexpr std::size_t kMaxTopologyPlanners = 16;
/// Trees have these colours in turn. They differ for people who see fewer colours, too (Okabe,
/// Ito).
inline constexpr std::array<std::string_view, 7> kTreeColors = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"};
inline constexpr std::string_view kLinkColor = "#999999";

struct TopologyNode {
  std::string name;
  std::string site;  // empty: it is a site of its own

  const std::string& place() const { return site.empty() ? name : site; }
};

/// A measured directed link. `measured.node` is where it begins.
struct TopologyLink {
  std::string to;
  LinkStatus measured;
};

struct TopologyEdge {
  std::string from;
  std::string to;  // where sums go; results come back
};

struct TopologyTree {
  std::uint32_t weight = 1;  // its share of the blocks is this of all weights
  std::string root;
  std::vector<TopologyEdge> edges;
};

/// What a planner would do for a job.
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
  std::string next_kind;  // of a plan that is committed for rounds to come; empty: there is none
  std::uint32_t next_epoch = 0;
  std::uint32_t next_round = 0;     // the first one that it carries
  std::vector<TopologyTree> trees;  // of the plan in force
  std::uint32_t trees_omitted = 0;
  // For the question why: of the plan in force, of all planners, and when another one is worth a
  // switch. Empty where nobody asked.
  std::uint64_t predicted_ns = 0;
  std::string bottleneck;
  std::uint64_t traffic_bytes = 0;  // that an all_reduce or exchange is predicted for
  bool exchanges = false;           // an exchange
  std::uint32_t gain_needed_percent = 0;
  std::string planner;   // that its plans come from; empty: not known
  std::string decision;  // of the coordinator, when it looked at the plan last; empty: none
  std::uint64_t decision_age_ns = 0;
  std::vector<std::string> roots;  // of all its plans, as an operator asked; empty: any
  std::string not_redrawn;  // why the plan stays whatever the network does; empty: it may not
  std::vector<TopologyPlan> plans;
  std::string not_compared;  // why the planners were not compared
};

/// A link between two sites, as planners count on it.
struct TopologyUse {
  std::string from;
  std::string to;
  std::uint64_t bits_per_second = 0;
  std::uint64_t configured_bits_per_second = 0;  // 0: the file does not have the link
  /// What was measured between nodes of these sites. `node` is the one that reported it; empty:
  /// nothing was.
  LinkStatus measured;
};

struct Topology {
  std::uint32_t version = kTopologyVersion;
  std::string node;  // who knows this
  std::vector<TopologyNode> nodes;
  std::uint32_t nodes_omitted = 0;
  std::vector<TopologyLink> links;
  std::uint32_t links_omitted = 0;
  std::vector<TopologyJob> jobs;
  // For the question why, where the planners were asked: what they count on.
  std::vector<TopologyUse> uses;
  std::uint32_t uses_omitted = 0;
};

/// The part of the blocks that a tree of a job carries, from 0 to 1.
double share_of(const TopologyJob& job, const TopologyTree& tree);

/// One JSON object of at most `max_bytes` (0: no limit). When all does not fit, trees and links are
/// left out evenly and counted, and nodes when there are neither left.
std::string to_json(const Topology& topology, std::size_t max_bytes = 0);
/// See from_json() of a status.
Result<Topology> topology_from_json(std::string_view text);

/// The same with a place for each site. Of the links between two sites the fastest one stays, and
/// what happens inside a site is gone.
Topology by_sites(const Topology& topology);

/// For a person: the measured links, and the trees of each job.
std::string topology_text(const Topology& topology);
/// For a person: why each job has its plan and no other one.
std::string why_text(const Topology& topology);
/// For graphviz: links are grey, and each tree has a colour.
std::string topology_dot(const Topology& topology);
/// A picture: places on a circle, links between them with their rate, trees in colours, and a
/// legend with shares, ages and confidences.
std::string topology_svg(const Topology& topology);

}  // namespace gradplane::telemetry
