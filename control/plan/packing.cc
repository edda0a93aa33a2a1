// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/packing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace gradplane::plan {
namespace {

/// How fast prices fall with the load: with n resources, one with a tenth less than the largest
/// load costs 1/n of the most loaded one.
constexpr double kSharpness = 10;
/// The rest of a resource that is used up. Above 0, so that edges over it can still be compared.
constexpr double kLeastLeft = 1e-9;

class Packer {
 public:
  Packer(const SiteGraph& graph, std::uint32_t max_height)
      : graph_(graph), max_height_(max_height) {
    for (PlaceId p = 0; p < graph.size(); ++p) {
      const std::vector<std::uint32_t> hops = graph.hops_from(p);
      if (*std::max_element(hops.begin(), hops.end()) <= max_height) centres_.push_back(p);
    }
  }

  Packing run(std::size_t max_trees, const std::vector<PlaceId>& roots, TreeSearch search) {
    if (search == TreeSearch::kEvenLoads)
      find_even_loads(max_trees, roots);
    else
      find_most_left(max_trees, roots);
    const Shares shares = min_max_shares(loads_, graph_.resources());
    Packing best{{}, {}, shares.s_per_bit};
    for (std::size_t t = 0; t < trees_.size(); ++t) {
      if (shares.of_tree[t] <= 0) continue;
      best.trees.push_back(std::move(trees_[t]));
      best.shares.push_back(shares.of_tree[t]);
    }
    return best;
  }

 private:
  void find_even_loads(std::size_t max_trees, const std::vector<PlaceId>& roots) {
    std::vector<double> used(graph_.resources(), 0.0);
    std::vector<double> prices(graph_.resources(), 1.0);
    const double steps = kSharpness * std::log(2 + static_cast<double>(graph_.resources()));
    for (std::size_t i = 0; i < max_trees; ++i) {
      const double most = *std::max_element(used.begin(), used.end());
      for (std::size_t r = 0; r < prices.size() && most > 0; ++r)
        prices[r] = std::exp((used[r] / most - 1) * steps);
      for (const Load& load : add_tree(i, graph_.edge_costs(prices), roots))
        used[load.resource] += load.s_per_bit;
    }
  }

  void find_most_left(std::size_t max_trees, const std::vector<PlaceId>& roots) {
    std::vector<double> left(graph_.resources(), 1.0);  // by resource: the share that is unused
    for (std::size_t i = 0; i < max_trees; ++i) {
      const std::vector<Load> loads = add_tree(i, costs_by_rest(left), roots);
      std::map<std::uint32_t, double> s_per_bit;  // a tree may cross a resource several times
      for (const Load& load : loads) s_per_bit[load.resource] += load.s_per_bit;
      double rate = std::numeric_limits<double>::infinity();
      for (const auto& [resource, load] : s_per_bit) rate = std::min(rate, left[resource] / load);
      for (const auto& [resource, load] : s_per_bit)
        left[resource] = std::max(kLeastLeft, left[resource] - rate * load);
    }
  }

  /// The seconds per bit of each edge, when only the unused shares of its resources carry it.
  std::vector<double> costs_by_rest(const std::vector<double>& left) const {
    std::vector<double> costs;
    costs.reserve(graph_.edges().size());
    for (const SiteGraph::Edge& edge : graph_.edges()) {
      double cost = 0;
      for (const Load& load : edge.loads)
        cost = std::max(cost, load.s_per_bit / left[load.resource]);
      costs.push_back(cost);
    }
    return costs;
  }

  /// Finds the `i`-th tree, keeps it unless it is known already, and returns its loads.
  std::vector<Load> add_tree(std::size_t i, const std::vector<double>& costs,
                             const std::vector<PlaceId>& roots) {
    const PlaceId centre = centres_[i % centres_.size()];
    const PlaceTree tree = graph_.trimmed(graph_.cheap_tree(costs, centre, max_height_), roots);
    std::vector<Load> loads = graph_.loads_of(tree);
    if (known_.insert(key_of(tree)).second) {
      trees_.push_back(tree);
      loads_.push_back(loads);
    }
    return loads;
  }

  /// Names a tree by its edges, whatever its root.
  static std::vector<std::uint32_t> key_of(const PlaceTree& tree) {
    std::vector<std::uint32_t> key;
    for (PlaceId p = 0; p < tree.parent.size(); ++p) {
      const PlaceId parent = tree.parent[p];
      if (parent == kNoPlace) continue;
      key.push_back(std::uint32_t{std::min(p, parent)} << 16 | std::max(p, parent));
    }
    std::sort(key.begin(), key.end());
    return key;
  }

  const SiteGraph& graph_;
  std::uint32_t max_height_;
  std::vector<PlaceId> centres_;  // places that all others reach within max_height_
  std::vector<PlaceTree> trees_;
  std::vector<std::vector<Load>> loads_;  // by tree
  std::set<std::vector<std::uint32_t>> known_;
};

}  // namespace

Packing pack_trees(const SiteGraph& graph, std::uint32_t max_height, std::size_t max_trees,
                   const std::vector<PlaceId>& roots, TreeSearch search) {
  if (graph.size() == 1) return {{{0, {kNoPlace}}}, {1.0}, 0};
  return Packer(graph, max_height).run(max_trees, roots, search);
}

}  // namespace gradplane::plan
