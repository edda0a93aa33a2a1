// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "control/plan/packing.h"
#include "control/plan/planner.h"
#include "control/plan/site_plan.h"

namespace gradplane::plan {
namespace {

/// The greatest height of a tree over sites before its root is chosen, unless the network has no
/// lower tree.
constexpr std::uint32_t kMaxHeight = 16;
/// For more sites than this only one height is tried.
constexpr std::size_t kManySites = 200;

/// The heights to try: lower trees have less latency, higher ones a better choice of links.
std::set<std::uint32_t> heights_of(const SiteGraph& graph) {
  std::uint32_t radius = UINT32_MAX;
  for (PlaceId p = 0; p < graph.size(); ++p) {
    const std::vector<std::uint32_t> hops = graph.hops_from(p);
    radius = std::min(radius, *std::max_element(hops.begin(), hops.end()));
  }
  const std::uint32_t limit = std::max(radius, kMaxHeight);
  if (graph.size() > kManySites) return {std::min(limit, 2 * radius)};
  return {radius, std::min(limit, radius + 1), std::min(limit, radius + 2),
          std::min(limit, 2 * radius), limit};
}

/// Gives trees with a root that may not be one the first of `roots` instead.
void use_roots(Packing& packing, const std::vector<PlaceId>& roots) {
  if (roots.empty()) return;
  for (PlaceTree& tree : packing.trees) {
    const bool good = std::find(roots.begin(), roots.end(), tree.root) != roots.end();
    if (good) continue;
    // The edges on the way from the new root to the old one are reversed.
    PlaceId above = kNoPlace;
    for (PlaceId at = roots.front(); at != kNoPlace;) {
      const PlaceId next = tree.parent[at];
      tree.parent[at] = above;
      above = at;
      at = next;
    }
    tree.root = roots.front();
  }
}

/// Takes places without ranks and without children out of the trees.
void drop_idle(Packing& packing, const std::vector<Place>& places) {
  for (PlaceTree& tree : packing.trees) {
    std::vector<std::size_t> children(places.size(), 0);
    for (const PlaceId parent : tree.parent)
      if (parent != kNoPlace) ++children[parent];
    for (PlaceId p = 0; p < places.size(); ++p) {
      // A parent that has lost its last child may be idle now, so it is next.
      for (PlaceId at = p; at != tree.root && tree.parent[at] != kNoPlace && children[at] == 0 &&
                           places[at].training.empty();) {
        const PlaceId parent = std::exchange(tree.parent[at], kNoPlace);
        --children[parent];
        at = parent;
      }
    }
  }
}

class Best {
 public:
  Best(const PlanRequest& request, const Sites& sites)
      : request_(request), sites_(sites), routes_(*request.network) {
    std::size_t most = 1;
    for (const Place& place : sites.places) most = std::max(most, place.summing.size());
    most_nodes_ = most;
  }

  /// Compares the plan of a packing, and one in which each tree has copies that leave a site
  /// through different nodes.
  Status offer(const Packing& packing, std::size_t max_trees) {
    const std::size_t copies =
        std::min(most_nodes_, std::max<std::size_t>(1, max_trees / packing.trees.size()));
    if (Status status = offer_copies(packing, 1); !status.ok()) return status;
    return copies == 1 ? Status{Nothing{}} : offer_copies(packing, copies);
  }

  std::optional<api::Plan>& plan() { return best_; }

 private:
  Status offer_copies(const Packing& packing, std::size_t copies) {
    Result<api::Plan> plan = plan_of_sites(request_, sites_, packing, copies, PlanKind::kPacked);
    if (!plan.ok()) return plan.error();
    const Result<Prediction> prediction = predict(routes_, plan.value(), request_.traffic);
    if (!prediction.ok()) return prediction.error();
    if (best_ && prediction.value().time >= time_) return Nothing{};
    best_ = std::move(plan.value());
    time_ = prediction.value().time;
    return Nothing{};
  }

  const PlanRequest& request_;
  const Sites& sites_;
  Routes routes_;
  std::size_t most_nodes_ = 1;
  std::optional<api::Plan> best_;
  Duration time_;
};

Status pack_links(const Sites& sites, std::size_t max_trees, Best& best) {
  Routes routes(sites.network);
  const SiteGraph graph(routes, sites.network, sites.places);
  const std::vector<std::uint32_t> hops = graph.hops_from(0);
  if (std::find(hops.begin(), hops.end(), UINT32_MAX) != hops.end())
    return Error{"the sites do not all reach each other in both directions"};
  for (const std::uint32_t height : heights_of(graph)) {
    for (const TreeSearch search : {TreeSearch::kEvenLoads, TreeSearch::kMostLeft}) {
      const Packing packing = pack_trees(graph, height, max_trees, sites.roots, search);
      if (Status status = best.offer(packing, max_trees); !status.ok()) return status;
    }
  }
  return Nothing{};
}

/// Leaves out sites without ranks that no one asks for as a root. Without links they are of no use.
void drop_helpers(Sites& sites) {
  std::vector<Place> places;
  std::vector<PlaceId> roots;
  for (PlaceId p = 0; p < sites.places.size(); ++p) {
    const bool is_root = std::find(sites.roots.begin(), sites.roots.end(), p) != sites.roots.end();
    if (sites.places[p].training.empty() && !is_root) continue;
    if (is_root) roots.push_back(static_cast<PlaceId>(places.size()));
    places.push_back(sites.places[p]);
  }
  sites.places = std::move(places);
  sites.roots = std::move(roots);
}

}  // namespace

Result<api::Plan> plan_packed(const PlanRequest& request) {
  Result<Sites> made = sites_of(request);
  if (!made.ok()) return made.error();
  Sites sites = std::move(made.value());
  std::size_t nodes = 0;
  for (const Place& place : sites.places) nodes += place.summing.size();
  const std::size_t max_trees = max_trees_of(nodes);
  const bool by_links = !sites.network.links.empty() && sites.places.size() > 1;
  if (!by_links) drop_helpers(sites);
  Best best(request, sites);
  Status status = Nothing{};
  if (by_links) {
    status = pack_links(sites, max_trees, best);
  } else {
    Packing packing = pack_accesses(access_rates(sites), max_trees);
    use_roots(packing, sites.roots);
    drop_idle(packing, sites.places);
    status = best.offer(packing, max_trees);
  }
  if (!status.ok()) return status.error();
  return std::move(*best.plan());
}

}  // namespace gradplane::plan
