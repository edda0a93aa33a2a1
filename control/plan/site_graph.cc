// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/site_graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "dataplane/base/assert.h"

namespace gradplane::plan {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// The sum of the nodes' access rates in one direction, in bit/s.
double sum_of(const Network& network, const std::vector<api::NodeId>& nodes,
              std::uint64_t Access::*rate) {
  double sum = 0;
  for (const api::NodeId node : nodes) {
    const std::uint64_t bits_per_s = network.nodes[node].access.*rate;
    if (bits_per_s == kUnlimited) return kInfinite;
    sum += static_cast<double>(bits_per_s);
  }
  return sum;
}

}  // namespace

Result<std::vector<Place>> places_of(const PlanRequest& request, const Network& network) {
  std::map<SiteId, Place> places;
  const auto site_of = [&network](api::NodeId node) {
    return node < network.nodes.size() ? network.nodes[node].site : kNoSite;
  };
  const auto add_summing = [&](api::NodeId node) {
    std::vector<api::NodeId>& summing = places[site_of(node)].summing;
    if (std::find(summing.begin(), summing.end(), node) == summing.end()) summing.push_back(node);
  };
  for (const api::Member& member : request.members) {
    if (member.ranks.empty()) continue;
    if (site_of(member.node) == kNoSite)
      return Error{node_text(request, member.node) +
                   " hosts ranks of the job and is at no site of the network; add it to one"};
    places[site_of(member.node)].training.push_back(member.node);
    add_summing(member.node);
  }
  if (places.empty()) return Error{"no node hosts a rank of the job; there is nothing to plan"};
  for (const auto* nodes : {&request.summing, &request.root_candidates}) {
    for (const api::NodeId node : *nodes)
      if (site_of(node) != kNoSite) add_summing(node);
  }
  std::vector<Place> result;
  for (auto& [site, place] : places) {
    place.site = site;
    std::sort(place.training.begin(), place.training.end());
    std::sort(place.summing.begin(), place.summing.end());
    result.push_back(std::move(place));
  }
  return result;
}

SiteGraph::SiteGraph(Routes& routes, const Network& network, const std::vector<Place>& places)
    : places_(places),
      routes_resources_(routes.resources()),
      resources_(routes_resources_ + 2 * places.size()),
      arcs_(places.size()) {
  add_place_limits(network);
  if (network.links.empty()) {
    for (PlaceId a = 0; a < places.size(); ++a)
      for (auto b = static_cast<PlaceId>(a + 1); b < places.size(); ++b) add_edge(routes, a, b);
    return;
  }
  std::vector<PlaceId> place_of(network.sites.size(), kNoPlace);
  for (PlaceId p = 0; p < places.size(); ++p) place_of[places[p].site] = p;
  std::vector<std::vector<SiteId>> linked(network.sites.size());
  for (const Link& link : network.links)
    if (link.bits_per_s > 0) linked[link.from].push_back(link.to);
  for (std::vector<SiteId>& sites : linked) std::sort(sites.begin(), sites.end());
  // A link may have only one direction, so a pair may be found from only one of its places.
  std::set<std::pair<PlaceId, PlaceId>> pairs;
  for (PlaceId a = 0; a < places.size(); ++a) {
    for (const PlaceId b : neighbours_of(network, a, place_of, linked))
      pairs.insert(std::minmax(a, b));
  }
  for (const auto& [a, b] : pairs) add_edge(routes, a, b);
}

/// The places that `place` reaches over links without passing a third place.
std::vector<PlaceId> SiteGraph::neighbours_of(
    const Network& network, PlaceId place, const std::vector<PlaceId>& place_of,
    const std::vector<std::vector<SiteId>>& linked) const {
  std::vector<bool> seen(network.sites.size(), false);
  std::vector<SiteId> open = {places_[place].site};
  seen[open.front()] = true;
  std::vector<PlaceId> found;
  while (!open.empty()) {
    const SiteId at = open.back();
    open.pop_back();
    for (const SiteId next : linked[at]) {
      if (seen[next]) continue;
      seen[next] = true;
      if (place_of[next] == kNoPlace)
        open.push_back(next);
      else
        found.push_back(place_of[next]);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

void SiteGraph::add_place_limits(const Network& network) {
  for (const Place& place : places_) {
    place_limits_.push_back(sum_of(network, place.summing, &Access::up_bits_per_s));
    place_limits_.push_back(sum_of(network, place.summing, &Access::down_bits_per_s));
  }
}

void SiteGraph::add_edge(Routes& routes, PlaceId a, PlaceId b) {
  Edge edge{.a = a, .b = b, .up_bits_per_s = 0, .down_bits_per_s = 0, .rtt_s = 0, .loads = {}};
  for (const bool up : {true, false}) {
    const PlaceId from = up ? a : b;
    const PlaceId to = up ? b : a;
    const Way& way = routes.between_sites(places_[from].site, places_[to].site);
    if (!way.open) return;
    double bits_per_s = way.bits_per_s;
    for (const ResourceId resource : way.resources)
      edge.loads.push_back(
          {resource, 1 / (static_cast<double>(routes.bits_per_s(resource)) * (1 - way.loss))});
    for (const std::size_t limit : {std::size_t{2} * from, std::size_t{2} * to + 1}) {
      if (place_limits_[limit] == kInfinite) continue;
      if (place_limits_[limit] == 0) return;
      bits_per_s = std::min(bits_per_s, place_limits_[limit]);
      edge.loads.push_back({static_cast<ResourceId>(routes_resources_ + limit),
                            1 / (place_limits_[limit] * (1 - way.loss))});
    }
    (up ? edge.up_bits_per_s : edge.down_bits_per_s) = bits_per_s;
    edge.rtt_s += way.rtt_s / 2;
  }
  const auto index = static_cast<std::uint32_t>(edges_.size());
  arcs_[a].push_back({b, index});
  arcs_[b].push_back({a, index});
  edges_.push_back(std::move(edge));
}

std::vector<std::uint32_t> SiteGraph::hops_from(PlaceId root) const {
  std::vector<std::uint32_t> hops(size(), UINT32_MAX);
  std::vector<PlaceId> queue = {root};
  hops[root] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const Arc& arc : arcs_[queue[i]]) {
      if (hops[arc.to] != UINT32_MAX) continue;
      hops[arc.to] = hops[queue[i]] + 1;
      queue.push_back(arc.to);
    }
  }
  return hops;
}

std::vector<double> SiteGraph::edge_costs(const std::vector<double>& prices) const {
  std::vector<double> costs;
  costs.reserve(edges_.size());
  for (const Edge& edge : edges_) {
    double cost = 0;
    for (const Load& load : edge.loads) cost += load.s_per_bit * prices[load.resource];
    costs.push_back(cost);
  }
  return costs;
}

std::uint32_t SiteGraph::edge_between(PlaceId a, PlaceId b) const {
  const auto& arcs = arcs_[a];
  const auto found = std::lower_bound(arcs.begin(), arcs.end(), b,
                                      [](const Arc& arc, PlaceId to) { return arc.to < to; });
  GP_ASSERT(found != arcs.end() && found->to == b);
  return found->edge;
}

std::vector<Load> SiteGraph::loads_of(const PlaceTree& tree) const {
  std::vector<Load> loads;
  for (PlaceId p = 0; p < size(); ++p) {
    if (tree.parent[p] == kNoPlace) continue;
    const Edge& edge = edges_[edge_between(p, tree.parent[p])];
    loads.insert(loads.end(), edge.loads.begin(), edge.loads.end());
  }
  return loads;
}

}  // namespace gradplane::plan
