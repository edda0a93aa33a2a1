// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Trees in a SiteGraph.
#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>

#include "control/plan/site_graph.h"

namespace gradplane::plan {
namespace {

/// The cost of a hop in seconds, besides its round trip, when a root is chosen.
constexpr double kHopS = 1e-4;

/// Prim's algorithm for trees of limited height.
class Grower {
 public:
  Grower(const SiteGraph& graph, const std::vector<double>& cost, PlaceId root,
         std::uint32_t max_height)
      : graph_(graph),
        cost_(cost),
        max_height_(max_height),
        tree_{root, std::vector<PlaceId>(graph.size(), kNoPlace)},
        height_(graph.size(), UINT32_MAX) {}

  PlaceTree run() {
    grow();
    hang_the_rest();
    return std::move(tree_);
  }

 private:
  void grow() {
    using Offer = std::tuple<double, std::uint32_t, PlaceId, PlaceId>;  // cost, height, to, from
    std::priority_queue<Offer, std::vector<Offer>, std::greater<>> offers;
    offers.push({0, 0, tree_.root, kNoPlace});
    while (!offers.empty()) {
      const auto [cost, height, place, from] = offers.top();
      offers.pop();
      if (height_[place] != UINT32_MAX) continue;
      height_[place] = height;
      tree_.parent[place] = from;
      if (height == max_height_) continue;
      for (const SiteGraph::Arc& arc : graph_.arcs(place)) {
        if (height_[arc.to] == UINT32_MAX)
          offers.push({cost_[arc.edge], height + 1, arc.to, place});
      }
    }
  }

  /// Adds places that are out of reach, because cheap edges have made the tree too high. The
  /// shortest ways to these places replace longer ones. An entry of height_ may then be larger than
  /// the real height but never smaller, so every parent is above its children.
  void hang_the_rest() {
    if (std::find(height_.begin(), height_.end(), UINT32_MAX) == height_.end()) return;
    const std::vector<std::uint32_t> hops = graph_.hops_from(tree_.root);
    std::vector<PlaceId> way;
    for (PlaceId place = 0; place < graph_.size(); ++place) {
      if (height_[place] != UINT32_MAX) continue;
      way.clear();
      for (PlaceId at = place; at != tree_.root; at = way.back()) {
        if (way.empty()) way.push_back(at);
        way.push_back(cheapest_above(at, hops));
      }
      for (std::size_t i = way.size() - 1; i-- > 0;) {
        if (height_[way[i]] <= hops[way[i]]) continue;
        height_[way[i]] = hops[way[i]];
        tree_.parent[way[i]] = way[i + 1];
      }
    }
  }

  PlaceId cheapest_above(PlaceId place, const std::vector<std::uint32_t>& hops) const {
    PlaceId best = kNoPlace;
    double least = std::numeric_limits<double>::infinity();
    for (const SiteGraph::Arc& arc : graph_.arcs(place)) {
      if (hops[arc.to] + 1 != hops[place] || (best != kNoPlace && cost_[arc.edge] >= least))
        continue;
      best = arc.to;
      least = cost_[arc.edge];
    }
    return best;
  }

  const SiteGraph& graph_;
  const std::vector<double>& cost_;
  std::uint32_t max_height_;
  PlaceTree tree_;
  std::vector<std::uint32_t> height_;
};

/// The edges of a tree, which can be walked in both directions.
class Walk {
 public:
  Walk(const SiteGraph& graph, const PlaceTree& tree) : next_(graph.size()) {
    for (PlaceId p = 0; p < graph.size(); ++p) {
      const PlaceId parent = tree.parent[p];
      if (parent == kNoPlace) continue;
      const auto& arcs = graph.arcs(p);
      const auto arc = std::find_if(arcs.begin(), arcs.end(),
                                    [parent](const auto& a) { return a.to == parent; });
      const double length = graph.edges()[arc->edge].rtt_s + kHopS;
      next_[p].push_back({parent, length});
      next_[parent].push_back({p, length});
    }
  }

  /// Removes leaves without ranks, except `keep`.
  void drop_leaves(const SiteGraph& graph, PlaceId keep) {
    std::vector<PlaceId> leaves;
    for (PlaceId p = 0; p < next_.size(); ++p) leaves.push_back(p);
    while (!leaves.empty()) {
      const PlaceId leaf = leaves.back();
      leaves.pop_back();
      const bool needed = leaf == keep || !graph.places()[leaf].training.empty();
      if (needed || next_[leaf].size() != 1) continue;
      const PlaceId other = next_[leaf].front().first;
      next_[leaf].clear();
      std::erase_if(next_[other], [leaf](const auto& edge) { return edge.first == leaf; });
      leaves.push_back(other);
    }
  }

  /// The lengths of the ways from a place, and the tree with this place as its root.
  std::pair<std::vector<double>, PlaceTree> from(PlaceId root) const {
    std::vector<double> length(next_.size(), -1);
    PlaceTree tree{root, std::vector<PlaceId>(next_.size(), kNoPlace)};
    std::vector<PlaceId> open = {root};
    length[root] = 0;
    while (!open.empty()) {
      const PlaceId at = open.back();
      open.pop_back();
      for (const auto& [to, by] : next_[at]) {
        if (length[to] >= 0) continue;
        length[to] = length[at] + by;
        tree.parent[to] = at;
        open.push_back(to);
      }
    }
    return {std::move(length), std::move(tree)};
  }

 private:
  std::vector<std::vector<std::pair<PlaceId, double>>> next_;  // by place
};

PlaceId furthest(const std::vector<double>& length) {
  return static_cast<PlaceId>(std::max_element(length.begin(), length.end()) - length.begin());
}

}  // namespace

PlaceTree SiteGraph::cheap_tree(const std::vector<double>& cost, PlaceId root,
                                std::uint32_t max_height) const {
  return Grower(*this, cost, root, max_height).run();
}

PlaceTree SiteGraph::trimmed(const PlaceTree& tree, const std::vector<PlaceId>& roots) const {
  Walk walk(*this, tree);
  const bool one_trains = std::any_of(roots.begin(), roots.end(),
                                      [this](PlaceId p) { return !places_[p].training.empty(); });
  // If no possible root has ranks, the first one is kept, although it is a leaf without ranks.
  walk.drop_leaves(*this, roots.empty() || one_trains ? kNoPlace : roots.front());
  // The longest way from a place ends at one of the two places that are furthest apart.
  PlaceId some = 0;
  while (places_[some].training.empty()) ++some;
  const PlaceId one_end = furthest(walk.from(some).first);
  const std::vector<double> from_one = walk.from(one_end).first;
  const std::vector<double> from_other = walk.from(furthest(from_one)).first;
  PlaceId best = kNoPlace;
  const auto ecc = [&](PlaceId p) { return std::max(from_one[p], from_other[p]); };
  for (PlaceId p = 0; p < size(); ++p) {
    const bool inside = from_one[p] >= 0;
    const bool may = roots.empty() || std::find(roots.begin(), roots.end(), p) != roots.end();
    if (inside && may && (best == kNoPlace || ecc(p) < ecc(best))) best = p;
  }
  walk.drop_leaves(*this, best);  // the root that was kept above may not be the best one
  return walk.from(best).second;
}

}  // namespace gradplane::plan
