// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <fmt/format.h>

#include <algorithm>

#include "control/telemetry/links.h"
#include "control/telemetry/printable.h"
#include "control/telemetry/quantity.h"
#include "control/telemetry/topology.h"
#include "dataplane/model/plan_kind.h"

namespace gradplane::telemetry {
namespace {

constexpr std::size_t kLabelColumns = 40;
constexpr std::size_t kWidth = 100;
constexpr double kPercent = 100;
constexpr double kSecond = 1e9;

std::string edges_text(const TopologyTree& tree) {
  std::string text;
  for (const TopologyEdge& edge : tree.edges) {
    text += fmt::format("{}{} > {}", text.empty() ? "" : ", ", printable(edge.from),
                        printable(edge.to));
  }
  return text.empty() ? "alone" : text;
}

std::string head_of(const TopologyJob& job) {
  const std::string next = job.next_kind.empty()
                               ? ""
                               : fmt::format("; from round {} on {}, epoch {}", job.next_round,
                                             printable(job.next_kind), job.next_epoch);
  return fmt::format("job {:08x} {}: {}, epoch {}{}", job.id,
                     clipped(printable(job.label), kLabelColumns), printable(job.plan_kind),
                     job.epoch, next);
}

std::string trees_text(const TopologyJob& job) {
  std::string text = fmt::format("\n{}\n", head_of(job));
  for (const TopologyTree& tree : job.trees) {
    text += wrapped(fmt::format("  {:>6}  ", percent_text(share_of(job, tree))),
                    fmt::format("root {}: {}", printable(tree.root), edges_text(tree)), kWidth);
  }
  if (job.trees_omitted > 0)
    text += fmt::format("  and {} more, left out here\n", job.trees_omitted);
  return text;
}

Table plans_table(const TopologyJob& job) {
  Table table({{"PLAN", Align::kLeft},
               {"PREDICTED", Align::kRight},
               {"AGAINST", Align::kRight},
               {"SLOWEST AT", Align::kLeft}});
  const auto add = [&](const std::string& name, std::uint64_t ns, const std::string& why) {
    const double change = static_cast<double>(ns) / static_cast<double>(job.predicted_ns) - 1;
    table.add({name, fmt::format("{:.3f} s", static_cast<double>(ns) / kSecond),
               job.predicted_ns == 0 ? "-" : fmt::format("{:+.1f} %", change * kPercent),
               printable(why)});
  };
  if (job.predicted_ns > 0) add("in force", job.predicted_ns, job.bottleneck);
  for (const TopologyPlan& plan : job.plans) {
    if (plan.predicted_ns == 0) {
      table.add({printable(plan.planner), "none", "-", printable(plan.why)});
    } else {
      add(printable(plan.planner), plan.predicted_ns, plan.why);
    }
  }
  return table;
}

/// Says whether a better plan of `planner` may replace the plan in force.
std::string redraw_text(const TopologyJob& job, const std::string& planner, double gain_percent) {
  if (!job.not_redrawn.empty())
    return fmt::format("The plan in force stays: {}.", printable(job.not_redrawn));
  if (!job.planner.empty() && job.planner != plan_kind_name(PlanKind::kAuto) &&
      job.planner != planner)
    return fmt::format("The plan in force stays, because redraws of this job are by {} alone.",
                       printable(job.planner));
  if (gain_percent < job.gain_needed_percent)
    return fmt::format("A redraw needs {} %, so the plan in force stays.", job.gain_needed_percent);
  return fmt::format("A redraw needs {} %, and has to save what the switch costs, so it may come.",
                     job.gain_needed_percent);
}

/// Says what a switch would gain, in two sentences.
std::string verdict_of(const TopologyJob& job) {
  const TopologyPlan* best = nullptr;
  for (const TopologyPlan& plan : job.plans) {
    if (plan.predicted_ns == 0) continue;
    if (best == nullptr || plan.predicted_ns < best->predicted_ns) best = &plan;
  }
  if (best == nullptr || job.predicted_ns == 0) return {};
  if (best->predicted_ns >= job.predicted_ns)
    return "No planner is predicted to make a faster plan than the one in force.";
  const double gain =
      1 - static_cast<double>(best->predicted_ns) / static_cast<double>(job.predicted_ns);
  return fmt::format("The best other plan ({}) is predicted to save {:.1f} %. {}",
                     printable(best->planner), gain * kPercent,
                     redraw_text(job, best->planner, gain * kPercent));
}

/// Says to which roots an operator has restricted the plans of the table.
std::string roots_text(const TopologyJob& job) {
  if (job.roots.empty()) return {};
  std::string names;
  for (const std::string& root : job.roots) names += (names.empty() ? "" : ", ") + printable(root);
  return fmt::format(
      "An operator's replan restricts the roots of all plans of this job to {}, and the plans here "
      "have no others; a replan without --root lifts that.",
      names);
}

/// Says what the coordinator decided when it last looked at the plan.
std::string decision_of(const TopologyJob& job) {
  if (job.decision.empty()) return {};
  return fmt::format("The coordinator looked at the plan {} ago, whose planner is {}: {}.",
                     duration_text(job.decision_age_ns), printable(job.planner),
                     printable(job.decision));
}

}  // namespace

double share_of(const TopologyJob& job, const TopologyTree& tree) {
  double weights = 0;
  for (const TopologyTree& other : job.trees) weights += other.weight;
  return weights > 0 ? tree.weight / weights : 0;
}

std::string topology_text(const Topology& topology) {
  std::string text =
      fmt::format("as node {} knows it: {}, {}, {}\n", printable(topology.node),
                  count_text(topology.nodes.size() + topology.nodes_omitted, "node"),
                  count_text(topology.links.size() + topology.links_omitted, "measured link"),
                  count_text(topology.jobs.size(), "job"));
  if (!topology.links.empty()) {
    text += "\nmeasured links\n" + links_table(topology.links).text(2);
    if (topology.links_omitted > 0)
      text += fmt::format("  and {} more, left out here\n", topology.links_omitted);
  }
  for (const TopologyJob& job : topology.jobs) text += trees_text(job);
  return text;
}

std::string why_text(const Topology& topology) {
  std::string text;
  for (const TopologyJob& job : topology.jobs) {
    if (!text.empty()) text += "\n";
    text += fmt::format("{}\n", head_of(job));
    if (!job.not_compared.empty()) {
      text +=
          wrapped("  ", "The planners were not compared: " + printable(job.not_compared), kWidth);
      continue;
    }
    text += fmt::format("  predicted for an {} of {}\n", job.exchanges ? "exchange" : "all_reduce",
                        bytes_text(job.traffic_bytes));
    text += plans_table(job).text(2);
    for (const std::string& sentence : {verdict_of(job), roots_text(job), decision_of(job)})
      if (!sentence.empty()) text += wrapped("  ", sentence, kWidth);
  }
  if (text.empty())
    return fmt::format("node {} has no job with a plan\n", printable(topology.node));
  if (topology.uses.empty()) return text;
  text += "\nlinks as planners count on them\n" + uses_table(topology.uses).text(2);
  if (topology.uses_omitted > 0)
    text += fmt::format("  and {} more, left out here\n", topology.uses_omitted);
  return text;
}

}  // namespace gradplane::telemetry
