// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/topology_page.h"

#include <fmt/format.h>

#include <cmath>

#include "control/config/plan_request.h"
#include "control/plan/planner.h"
#include "control/plan/predict.h"

namespace gradplane::daemon {
namespace {

constexpr double kPercent = 100;

std::string name_of(const config::Config& config, api::NodeId node) {
  return config.cluster.nodes[node].name;
}

std::vector<telemetry::TopologyNode> nodes_of(const config::Config& config) {
  std::vector<telemetry::TopologyNode> out;
  const auto& network = config.network.network;
  for (std::size_t n = 0; n < config.cluster.nodes.size(); ++n) {
    telemetry::TopologyNode& node = out.emplace_back();
    node.name = config.cluster.nodes[n].name;
    if (!network || n >= network->nodes.size()) continue;
    const plan::SiteId site = network->nodes[n].site;
    if (site != plan::kNoSite && network->sites[site].name != node.name)
      node.site = network->sites[site].name;
  }
  return out;
}

std::vector<telemetry::TopologyTree> trees_of(const config::Config& config, const api::Plan& plan) {
  std::vector<telemetry::TopologyTree> out;
  for (const api::Tree& tree : plan.trees) {
    telemetry::TopologyTree& shown = out.emplace_back();
    shown.weight = tree.weight;
    shown.root = name_of(config, tree.root);
    for (std::size_t m = 0; m < plan.members.size(); ++m) {
      if (tree.parent[m] == api::kNoNode) continue;
      shown.edges.push_back(
          {name_of(config, plan.members[m].node), name_of(config, tree.parent[m])});
    }
  }
  return out;
}

std::uint64_t ns_of(Duration time) {
  return static_cast<std::uint64_t>(time.count_ns());
}

/// Why all planners are not asked here; empty when they may be.
std::string why_not_compare(const plan::PlanRequest& request) {
  if (!request.network)
    return "the file of this node says nothing of the network; write a section network, or ask at "
           "a node whose file has one";
  if (request.network->sites.size() > kMaxComparedSites)
    return fmt::format("the network has more than {} sites; ask gradplane plan --network FILE",
                       kMaxComparedSites);
  return {};
}

/// Members of the plan with ranks; who only sums is chosen by each planner anew.
std::vector<api::Member> ranks_of(const api::Plan& plan) {
  std::vector<api::Member> members;
  for (const api::Member& member : plan.members) {
    if (!member.ranks.empty()) members.push_back(member);
  }
  return members;
}

void compare(const config::Config& config, const api::Plan& in_force, telemetry::TopologyJob& job) {
  plan::PlanRequest request = config::plan_request_of(config);
  job.not_compared = why_not_compare(request);
  if (!job.not_compared.empty()) return;
  const auto now = plan::predict(*request.network, in_force, request.traffic);
  if (!now.ok()) {
    job.not_compared = now.error().message;
    return;
  }
  job.predicted_ns = ns_of(now.value().time);
  job.bottleneck = now.value().bottleneck;
  job.traffic_bytes = request.traffic.bytes;
  job.gain_needed_percent =
      static_cast<std::uint32_t>(std::lround(plan::kWorthwhileGain * kPercent));
  request.members = ranks_of(in_force);
  for (std::size_t k = 0; k < kPlanKindNames.size(); ++k) {
    const auto kind = static_cast<PlanKind>(k);
    if (kind == PlanKind::kAuto || (kind == PlanKind::kManual && request.trees.empty())) continue;
    request.planner = kind;
    request.root_candidates = config::root_candidates(config, kind);
    telemetry::TopologyPlan& shown = job.plans.emplace_back();
    shown.planner = plan_kind_name(kind);
    const auto planned = plan::make_predicted_plan(request);
    if (!planned.ok()) {
      shown.why = planned.error().message;
    } else if (planned.value().prediction) {
      shown.predicted_ns = ns_of(planned.value().prediction->time);
      shown.why = planned.value().prediction->bottleneck;
    }
  }
}

}  // namespace

telemetry::Topology topology_page(const config::Config& config, const JobTable& jobs,
                                  const std::vector<telemetry::LinkStatus>& links, bool why) {
  telemetry::Topology out;
  out.node = config.self_node().name;
  out.nodes = nodes_of(config);
  for (const telemetry::LinkStatus& link : links) out.links.push_back({out.node, link});
  for (const InstalledJob& job : jobs.installed()) {
    if (job.state != InstalledJob::State::kRunning) continue;
    telemetry::TopologyJob& shown = out.jobs.emplace_back();
    shown.id = job.id;
    shown.label = job.label;
    shown.plan_kind = plan_kind_name(job.kind);
    shown.epoch = job.epoch;
    shown.trees = trees_of(config, job.plan);
    if (why) compare(config, job.plan, shown);
  }
  return out;
}

}  // namespace gradplane::daemon
