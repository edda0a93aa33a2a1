// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/cli/plan_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "control/cli/exit_codes.h"
#include "control/cli/output.h"
#include "control/config/plan_request.h"
#include "control/config/units.h"
#include "control/plan/packing_bound.h"
#include "control/plan/planner.h"

namespace gradplane::cli {
namespace {

constexpr double kPercent = 100;

/// Members with one rank each, on the named nodes. Without names: on all nodes that are no
/// aggregators, or on all nodes if all are.
Result<std::vector<api::Member>> members_of(const config::Config& config,
                                            const std::vector<std::string>& names) {
  const auto& nodes = config.cluster.nodes;
  for (const std::string& name : names) {
    const bool known =
        std::any_of(nodes.begin(), nodes.end(), [&](const auto& n) { return n.name == name; });
    if (!known) return Error{"there is no node " + name + " in cluster.nodes; see --ranks"};
  }
  const bool all =
      std::all_of(nodes.begin(), nodes.end(), [](const auto& n) { return n.aggregate; });
  std::vector<api::Member> members;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const bool named = std::find(names.begin(), names.end(), nodes[n].name) != names.end();
    if (names.empty() ? !all && nodes[n].aggregate : !named) continue;
    const auto rank = static_cast<std::uint16_t>(members.size());
    members.push_back({static_cast<api::NodeId>(n), {rank}});
  }
  return members;
}

std::string row_of(std::string_view name, const plan::PlannedTime& planned) {
  const plan::Prediction& p = *planned.prediction;
  return fmt::format("{:<8} {:>9} {:>9} {:>9} {:>6} {:>7}  {}\n", name, plan::text_of(p.time),
                     plan::text_of(p.transfer), plan::text_of(p.latency), planned.plan.trees.size(),
                     p.height, p.bottleneck);
}

std::string trees_of(const plan::PlanRequest& request, const api::Plan& plan) {
  std::uint64_t weights = 0;
  for (const api::Tree& tree : plan.trees) weights += tree.weight;
  const auto& names = request.node_names;
  std::string text;
  for (const api::Tree& tree : plan.trees) {
    std::string edges;
    for (std::size_t m = 0; m < plan.members.size(); ++m) {
      if (tree.parent[m] == api::kNoNode) continue;
      edges += fmt::format("{}{} > {}", edges.empty() ? "" : ", ", names[plan.members[m].node],
                           names[tree.parent[m]]);
    }
    text += fmt::format("  {:5.2f} %  root {}: {}\n",
                        kPercent * static_cast<double>(tree.weight) / static_cast<double>(weights),
                        names[tree.root], edges.empty() ? "alone" : edges);
  }
  return text;
}

/// The auxiliary routes; empty unless the configuration asks for them.
std::string routes_of(const plan::PlanRequest& request, const api::Plan& plan) {
  if (!request.auxiliary) return {};
  if (plan.routes.empty()) return "  no auxiliary routes\n";
  const auto& names = request.node_names;
  std::string text;
  for (const api::Route& route : plan.routes) {
    std::string via;
    for (const api::NodeId relay : route.via)
      via += fmt::format("{}{}", via.empty() ? "" : ", ", names[relay]);
    text += fmt::format("  route {} > {} over {}\n", names[route.from], names[route.to], via);
  }
  return text;
}

std::string bound_of(const plan::PlanRequest& request) {
  const Result<double> bound = plan::packing_bound_s_per_bit(request);
  if (!bound.ok()) return "There is no packing bound: " + bound.error().message + ".\n";
  const plan::Traffic& traffic = request.traffic;
  const double overhead = static_cast<double>(traffic.block_bytes + traffic.overhead_bytes) /
                          static_cast<double>(traffic.block_bytes);
  const double seconds = bound.value() * 8 * static_cast<double>(traffic.bytes) * overhead;
  constexpr double kNsPerS = 1e9;
  const double ns =
      std::min(seconds * kNsPerS, static_cast<double>(Duration::max().count_ns()) / 2);
  return fmt::format(
      "No trees in which each site sends to a neighbour take less than {} (packing bound).\n",
      plan::text_of(Duration::ns(static_cast<std::int64_t>(ns))));
}

/// The kinds to show: all that can be made, or the named one; none if the name is unknown.
std::vector<PlanKind> kinds_of(const plan::PlanRequest& request, const std::string& name) {
  std::vector<PlanKind> kinds;
  for (std::size_t k = 0; k < kPlanKindNames.size(); ++k) {
    const auto kind = static_cast<PlanKind>(k);
    if (name.empty() ? kind == PlanKind::kManual && request.trees.empty()
                     : name != kPlanKindNames[k])
      continue;
    kinds.push_back(kind);
  }
  return kinds;
}

}  // namespace

Result<std::string> plans_text(const config::Config& config, const PlanOptions& options) {
  plan::PlanRequest request = config::plan_request_of(config);
  Result<std::vector<api::Member>> members = members_of(config, options.ranks);
  if (!members.ok()) return members.error();
  request.members = std::move(members.value());
  if (!request.network)
    return Error{
        "the file says nothing of the network; write a section network, or "
        "port.link_rate of every node"};
  if (!options.bytes.empty()) {
    const auto bytes = config::parse_with_unit(options.bytes, config::size_units());
    if (!bytes || *bytes <= 0)
      return Error{"--bytes accepts a size with a unit (B, KiB, MiB, GiB), not " + options.bytes};
    request.traffic.bytes = static_cast<std::uint64_t>(*bytes);
  }
  std::string text =
      fmt::format("{} sites, {} directed links, {} nodes with a rank; an all_reduce of {}\n\n",
                  request.network->sites.size(), request.network->links.size(),
                  request.members.size(), plan::text_of_bytes(request.traffic.bytes));
  text += fmt::format("{:<8} {:>9} {:>9} {:>9} {:>6} {:>7}  {}\n", "plan", "predicted", "transfer",
                      "latency", "trees", "height", "slowest at");
  std::string trees;
  std::size_t plans = 0;
  for (const PlanKind kind : kinds_of(request, options.plan)) {
    const std::string name(plan_kind_name(kind));
    request.planner = kind;
    request.root_candidates = config::root_candidates(config, kind);
    const auto planned = plan::make_predicted_plan(request);
    if (!planned.ok()) {
      text += fmt::format("{:<8} none: {}\n", name, planned.error().message);
      continue;
    }
    ++plans;
    text += row_of(name, planned.value());
    const PlanKind made = planned.value().plan.kind;
    trees += fmt::format("\n{}{}:\n", name,
                         made == kind ? "" : fmt::format(" ({})", plan_kind_name(made)));
    trees += trees_of(request, planned.value().plan);
    trees += routes_of(request, planned.value().plan);
  }
  if (plans == 0) return Error{"there is no plan\n" + text};
  text += '\n';
  text += bound_of(request);
  return options.brief ? text : text + trees;
}

int show_plans(const PlanOptions& options) {
  const auto parsed = config::load_config(options.network_path,
                                          {.node_override = "", .host_name = {}, .any_node = true});
  for (const config::ConfigError& error : parsed.errors) complain(error.text());
  if (!parsed.ok()) return kExitFailure;
  const Result<std::string> text = plans_text(*parsed.config, options);
  if (!text.ok()) {
    complain(options.network_path + ": " + text.error().message);
    return kExitFailure;
  }
  return print(text.value());
}

}  // namespace gradplane::cli
