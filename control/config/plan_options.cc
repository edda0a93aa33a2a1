// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <fmt/format.h>

#include <array>
#include <map>
#include <set>
#include <string>

#include "control/config/draft.h"
#include "control/config/option_table.h"

namespace gradplane::config {
namespace {

using enum OptionType;
using enum OptionScope;

constexpr std::array<std::string_view, 2> kShardRoots = {"aggregators", "training"};
/// A tree's share of the blocks is its weight over the sum of all, which must fit 64 bits.
constexpr std::int64_t kMaxTreeWeight = 1000000;
constexpr std::int64_t kMinRedrawNs = Duration::ms(500).count_ns();
constexpr std::int64_t kMaxRedrawNs = Duration::seconds(3600).count_ns();

constexpr Option kOptions[] = {
    {.path = "plan.kind",
     .type = kChoice,
     .choices = kPlanKindNames,
     .default_text = "star",
     .summary = "`star`: one root sums every block. `sharded`: several roots share the blocks. "
                "`manual`: the trees in plan.trees. `fapt`, `packed` and `auto` plan with the "
                "section `network`, or with port.link_rate of every node: NetStorm's trees, trees "
                "that together load the network least, and whichever plan is predicted to be "
                "fastest.",
     .store = [](const Target& t, const Value& v) { t.config->plan.kind = as<PlanKind>(v); }},
    {.path = "plan.root",
     .type = kNodeName,
     .default_note = "the first node with aggregate: true",
     .summary = "With star: the root.",
     .store = [](const Target& t, const Value& v) { t.references->root = v.text; }},
    {.path = "plan.roots",
     .type = kChoice,
     .choices = kShardRoots,
     .default_text = "aggregators",
     .summary = "With sharded: the roots are the nodes with aggregate: true, or the nodes that "
                "host the job's ranks.",
     .store = [](const Target& t, const Value& v) { t.config->plan.roots = as<ShardRoots>(v); }},
    {.path = "plan.jobs",
     .type = kPatternChoices,
     .choices = kPlanKindNames,
     .default_text = "{}",
     .summary = "Plans of single jobs, by the job's name as in `congestion.jobs`. The first line "
                "that matches decides, before `plan.kind`.",
     .store =
         [](const Target& t, const Value& v) {
           for (const SectionEntry& entry : v.entries)
             t.config->plan.jobs.push_back({entry.key, static_cast<PlanKind>(entry.choice)});
         }},
    {.path = "plan.auxiliary",
     .type = kBoolean,
     .default_text = "false",
     .summary =
         "Whether plans get auxiliary routes: blocks whose direct way has no room go to the "
         "same node over one or two other nodes of the job, which relay and do not sum. "
         "A plan has them if the coordinator knows the network, from its file or from measured "
         "links, and if the job has at most 32 nodes. The coordinator's value counts.",
     .store = [](const Target& t, const Value& v) { t.config->plan.auxiliary = v.number != 0; }},
    {.path = "plan.redraw.enabled",
     .type = kBoolean,
     .default_text = "true",
     .summary = "Whether the coordinator makes another plan while a job runs, when measured links "
                "say that it would be faster. Only for jobs whose planner needs the network (fapt, "
                "packed, auto), and for those with selections of receivers by links.",
     .store = [](const Target& t,
                 const Value& v) { t.config->plan.redraw.enabled = v.number != 0; }},
    {.path = "plan.redraw.every",
     .type = kTime,
     .min = kMinRedrawNs,
     .max = kMaxRedrawNs,
     .default_text = "5 s",
     .summary = "Least time between two such plans of a job. After one that a node refused or did "
                "not answer it is twice as long, and so on, up to two minutes.",
     .store = [](const Target& t,
                 const Value& v) { t.config->plan.redraw.every = Duration::ns(v.number); }},
    {.path = "plan.redraw.gain",
     .type = kShare,
     .min = kWholeShare / 100,
     .max = kWholeShare,
     .default_text = "10 %",
     .summary =
         "Least share of the predicted time of an all_reduce, or of an exchange, that such a plan "
         "saves. It also saves within 30 s what the switch costs.",
     .store =
         [](const Target& t, const Value& v) {
           t.config->plan.redraw.gain_ppm = static_cast<std::uint32_t>(v.number);
         }},
    {.path = "weight",
     .scope = kTree,
     .type = kInteger,
     .min = 1,
     .max = kMaxTreeWeight,
     .default_text = "1",
     .summary =
         "Share of the blocks of every round that this tree carries, relative to the others.",
     .store = [](const Target& t, const Value& v) { t.tree->weight = as<std::uint32_t>(v); }},
    {.path = "root",
     .scope = kTree,
     .type = kNodeName,
     .required = true,
     .summary = "The node that ends the sums of this tree.",
     .store = [](const Target& t, const Value& v) { t.tree_references->root = v.text; }},
    {.path = "parents",
     .scope = kTree,
     .type = kNodePairs,
     .default_note = "none: a tree of the root alone",
     .summary =
         "For every other node of the tree the node that it sends its sums to: the root, or "
         "a relay that has a line of its own. Every node that hosts ranks of a job must be "
         "in every tree; a relay without such a node below it is left out of the job's plan.",
     .store = [](const Target& t, const Value& v) { t.tree_references->parents = v.entries; }},
};

/// Checks that the parents of each node of a tree lead to the root.
void check_tree(Draft& draft, std::size_t index) {
  const PlanTree& tree = draft.config.plan.trees[index];
  const auto& nodes = draft.config.cluster.nodes;
  const std::string key = tree_key(index, "parents");
  std::map<api::NodeId, api::NodeId> parent(tree.parents.begin(), tree.parents.end());
  if (tree.root == api::kNoNode || parent.contains(api::kNoNode)) return;  // told already
  if (parent.contains(tree.root)) {
    draft.error(key,
                fmt::format("the root {} has a parent; remove its line", nodes[tree.root].name));
    return;
  }
  for (const auto& [node, first] : parent) {
    api::NodeId at = node;
    for (std::size_t steps = 0; at != tree.root; ++steps) {
      if (at == api::kNoNode) return;  // told already
      const auto up = parent.find(at);
      if (up == parent.end()) {
        draft.error(key, fmt::format("{} is the parent of another node and has none itself, and it "
                                     "is not the root {}",
                                     nodes[at].name, nodes[tree.root].name));
        return;
      }
      if (steps == parent.size()) {
        draft.error(key, fmt::format("the parents of {} go round in a circle and never reach the "
                                     "root {}",
                                     nodes[node].name, nodes[tree.root].name));
        return;
      }
      at = up->second;
    }
  }
}

/// Warns of nodes that are not in a tree: a job can have a manual plan only if all nodes with ranks
/// of it are in every tree. Nodes with aggregate: true are assumed to have no ranks.
void warn_of_nodes_outside(Draft& draft, std::size_t index) {
  const PlanTree& tree = draft.config.plan.trees[index];
  const auto& nodes = draft.config.cluster.nodes;
  std::set<api::NodeId> in = {tree.root};
  for (const auto& [node, parent] : tree.parents) in.insert(node);
  if (in.contains(api::kNoNode)) return;  // told already
  std::size_t count = 0;
  std::string first;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (nodes[n].aggregate || in.contains(static_cast<api::NodeId>(n))) continue;
    if (++count == 1) first = nodes[n].name;
  }
  if (count == 0) return;
  const std::string who = count == 1 ? fmt::format("node {} is", first)
                                     : fmt::format("node {} and {} more are", first, count - 1);
  draft.warn(tree_key(index, "parents"),
             who +
                 " not in this tree, so a job with ranks there gets no manual plan; give each of "
                 "them a parent, or set aggregate: true for those that host no ranks");
}

}  // namespace

std::span<const Option> plan_options() {
  return kOptions;
}

void check_trees(Draft& draft) {
  for (std::size_t i = 0; i < draft.tree_count; ++i) {
    check_tree(draft, i);
    warn_of_nodes_outside(draft, i);
  }
}

}  // namespace gradplane::config
