// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/packing_bound.h"

#include <algorithm>
#include <cmath>

#include "control/plan/packing.h"
#include "control/plan/site_plan.h"

namespace gradplane::plan {
namespace {

constexpr double kSharpness = 12;
constexpr std::size_t kIterations = 1500;
/// The bound at the mean of the prices is taken after each so many iterations. Half-way the mean
/// begins anew, without the bad prices of the beginning.
constexpr std::size_t kPeriod = 50;

/// The bound that these prices give, scaled to the sum 1: the cost of the cheapest tree, which
/// `tree` becomes.
double bound_at(const SiteGraph& graph, const std::vector<double>& prices, PlaceTree& tree) {
  tree = graph.cheap_tree(graph.edge_costs(prices), 0, UINT32_MAX);
  double sum = 0;
  for (const double price : prices) sum += price;
  double cost = 0;
  for (const Load& load : graph.loads_of(tree)) cost += load.s_per_bit * prices[load.resource];
  return cost / sum;
}

/// Prices at which all edges cost the same. They give the bound of the partition into single sites,
/// which is the exact one in networks with many links.
std::vector<double> even_prices(const SiteGraph& graph) {
  std::vector<double> prices(graph.resources(), 0.0);
  for (const SiteGraph::Edge& edge : graph.edges()) {
    const auto slowest =
        std::max_element(edge.loads.begin(), edge.loads.end(),
                         [](const Load& a, const Load& b) { return a.s_per_bit < b.s_per_bit; });
    if (slowest != edge.loads.end()) prices[slowest->resource] = 1 / slowest->s_per_bit;
  }
  return prices;
}

double bound_of_graph(const SiteGraph& graph) {
  std::vector<double> used(graph.resources(), 0.0);
  std::vector<double> prices(graph.resources(), 1.0);
  std::vector<double> mean(graph.resources(), 0.0);
  const double steps = kSharpness * std::log(2 + static_cast<double>(graph.resources()));
  PlaceTree tree;
  const std::vector<double> even = even_prices(graph);
  if (std::all_of(even.begin(), even.end(), [](double price) { return price == 0; })) return 0;
  double best = bound_at(graph, even, tree);
  for (std::size_t i = 1; i <= kIterations; ++i) {
    best = std::max(best, bound_at(graph, prices, tree));
    for (const Load& load : graph.loads_of(tree)) used[load.resource] += load.s_per_bit;
    const double most = *std::max_element(used.begin(), used.end());
    if (most == 0) return best;
    for (std::size_t r = 0; r < prices.size(); ++r) {
      prices[r] = std::exp((used[r] / most - 1) * steps);
      mean[r] += prices[r];
    }
    if (i % kPeriod != 0) continue;
    best = std::max(best, bound_at(graph, mean, tree));
    if (i == kIterations / 2) mean.assign(mean.size(), 0.0);
  }
  return best;
}

}  // namespace

Result<double> packing_bound_s_per_bit(const PlanRequest& request) {
  Result<Sites> made = sites_of(request);
  if (!made.ok()) return made.error();
  const Sites& sites = made.value();
  const bool all_train = std::all_of(sites.places.begin(), sites.places.end(),
                                     [](const Place& place) { return !place.training.empty(); });
  if (!all_train) return Error{"a site without ranks may sum, so trees need not span all sites"};
  if (sites.places.size() == 1) return 0.0;
  if (!sites.network.links.empty()) {
    Routes routes(sites.network);
    const SiteGraph graph(routes, sites.network, sites.places);
    const std::vector<std::uint32_t> hops = graph.hops_from(0);
    if (std::find(hops.begin(), hops.end(), UINT32_MAX) != hops.end())
      return Error{"the sites do not all reach each other in both directions"};
    return bound_of_graph(graph);
  }
  const std::vector<double> rates = access_rates(sites);
  const std::vector<double> neighbours = neighbours_by_rate(rates);
  double bound = 0;
  for (std::size_t p = 0; p < rates.size(); ++p) bound = std::max(bound, neighbours[p] / rates[p]);
  return bound;
}

}  // namespace gradplane::plan
