// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "control/plan/packing.h"
#include "control/plan/planner.h"
#include "control/plan/site_plan.h"

namespace gradplane::plan {
namespace {

/// A root's tree, and what NetStorm's code calls its performance.
struct Rooted {
  PlaceTree tree;
  double quality = 0;
};

/// The rate of an edge away from `from`.
double bits_per_s(const SiteGraph::Edge& edge, PlaceId from) {
  return from == edge.a ? edge.up_bits_per_s : edge.down_bits_per_s;
}

/// Dijkstra from the root against the direction of the pushes.
Rooted shortest_ways(const SiteGraph& graph, PlaceId root) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  PlaceTree tree{root, std::vector<PlaceId>(graph.size(), kNoPlace)};
  std::vector<double> cost(graph.size(), kFar);
  std::vector<std::size_t> level(graph.size(), 0);
  std::vector<double> slowest;  // by level, of the results: the largest 1/rate
  using Entry = std::pair<double, PlaceId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  std::vector<bool> done(graph.size(), false);
  std::vector<double> down(graph.size(), 0);
  cost[root] = 0;
  queue.push({0, root});
  while (!queue.empty()) {
    const PlaceId at = queue.top().second;
    queue.pop();
    if (done[at]) continue;
    done[at] = true;
    if (at != root) {
      level[at] = level[tree.parent[at]] + 1;
      slowest.resize(std::max(slowest.size(), level[at]), 0);
      slowest[level[at] - 1] = std::max(slowest[level[at] - 1], down[at]);
    }
    for (const SiteGraph::Arc& arc : graph.arcs(at)) {
      const SiteGraph::Edge& edge = graph.edges()[arc.edge];
      const double further = cost[at] + 1 / bits_per_s(edge, arc.to);
      if (further >= cost[arc.to]) continue;
      cost[arc.to] = further;
      tree.parent[arc.to] = at;
      down[arc.to] = 1 / bits_per_s(edge, at);
      queue.push({further, arc.to});
    }
  }
  double sum = 0;
  for (const double s_per_bit : slowest) sum += s_per_bit;
  return {std::move(tree), sum > 0 ? 1 / sum : 1};
}

/// The tree in which every place is a child of the root. Where only accesses limit, no other way is
/// faster: it passes the same two accesses.
Rooted direct_ways(const std::vector<double>& up, const std::vector<double>& down, PlaceId root) {
  Rooted rooted{{root, std::vector<PlaceId>(up.size(), root)}, up[root]};
  rooted.tree.parent[root] = kNoPlace;
  for (PlaceId p = 0; p < up.size(); ++p)
    if (p != root) rooted.quality = std::min(rooted.quality, down[p]);
  return rooted;
}

std::vector<PlaceId> roots_of(const Sites& sites) {
  if (!sites.roots.empty()) return sites.roots;
  std::vector<PlaceId> roots;
  for (PlaceId p = 0; p < sites.places.size(); ++p)
    if (!sites.places[p].training.empty()) roots.push_back(p);
  return roots;
}

Result<std::vector<Rooted>> trees_over_links(const Sites& sites) {
  Routes routes(sites.network);
  const SiteGraph graph(routes, sites.network, sites.places);
  const std::vector<std::uint32_t> hops = graph.hops_from(0);
  if (std::find(hops.begin(), hops.end(), UINT32_MAX) != hops.end())
    return Error{"the sites do not all reach each other in both directions"};
  std::vector<Rooted> trees;
  for (const PlaceId root : roots_of(sites)) {
    trees.push_back(shortest_ways(graph, root));
    trees.back().tree = graph.trimmed(trees.back().tree, {root});
  }
  return trees;
}

/// One tree for each root. Sites without ranks are left out: direct ways need no relays.
std::vector<Rooted> trees_over_accesses(const Sites& sites) {
  const std::vector<double> rates = access_rates(sites);
  std::vector<Rooted> trees;
  for (const PlaceId root : roots_of(sites)) {
    trees.push_back(direct_ways(rates, rates, root));
    for (PlaceId p = 0; p < sites.places.size(); ++p)
      if (sites.places[p].training.empty()) trees.back().tree.parent[p] = kNoPlace;
  }
  return trees;
}

}  // namespace

Result<api::Plan> plan_fapt(const PlanRequest& request) {
  Result<Sites> made = sites_of(request);
  if (!made.ok()) return made.error();
  const Sites& sites = made.value();
  std::vector<Rooted> trees;
  if (sites.network.links.empty() || sites.places.size() == 1) {
    trees = trees_over_accesses(sites);
  } else {
    Result<std::vector<Rooted>> found = trees_over_links(sites);
    if (!found.ok()) return found.error();
    trees = std::move(found.value());
  }
  std::stable_sort(trees.begin(), trees.end(),
                   [](const Rooted& a, const Rooted& b) { return a.quality > b.quality; });
  std::size_t nodes = 0;
  for (const Place& place : sites.places) nodes += place.summing.size();
  trees.resize(std::min(trees.size(), max_trees_of(nodes)));
  double sum = 0;
  for (const Rooted& rooted : trees) sum += rooted.quality;
  Packing packing;
  for (Rooted& rooted : trees) {
    packing.trees.push_back(std::move(rooted.tree));
    // If nothing limits some tree, all trees get the same share.
    packing.shares.push_back(std::isfinite(sum) ? rooted.quality / sum
                                                : 1 / static_cast<double>(trees.size()));
  }
  return plan_of_sites(request, sites, packing, 1, PlanKind::kFapt);
}

}  // namespace gradplane::plan
