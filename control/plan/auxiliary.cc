// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/auxiliary.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "control/plan/routes.h"
#include "control/plan/validate_routes.h"
#include "dataplane/model/limits.h"

namespace gradplane::plan {
namespace {

struct Candidate {
  double s_per_bit = 0;
  std::vector<api::NodeId> via;
  /// Cheaper candidates come first; of equal ones, those with fewer relays.
  bool operator<(const Candidate& other) const {
    return std::tuple(s_per_bit, via.size(), via) <
           std::tuple(other.s_per_bit, other.via.size(), other.via);
  }
};

/// The ways between all members of a plan.
class Ways {
 public:
  Ways(const api::Plan& plan, const Network& network) : routes_(network) {
    for (const api::Member& member : plan.members) nodes_.push_back(member.node);
    std::sort(nodes_.begin(), nodes_.end());
    for (const api::NodeId from : nodes_) {
      for (const api::NodeId to : nodes_) {
        if (from != to) ways_[{from, to}] = routes_.between_nodes(from, to);
      }
    }
  }

  /// The candidates for a pair of nodes, the cheapest first.
  std::vector<Candidate> candidates(const NodePair& pair) const {
    std::vector<Candidate> found;
    const std::vector<ResourceId> slowest = slowest_of(ways_.at(pair));
    if (slowest.empty()) return found;
    const auto& [from, to] = pair;
    for (const api::NodeId first : nodes_) {
      if (first == from || first == to || !avoids({from, first}, slowest)) continue;
      const double begin = ways_.at({from, first}).s_per_bit;
      if (avoids({first, to}, slowest)) {
        found.push_back({begin + ways_.at({first, to}).s_per_bit, {first}});
      }
      for (const api::NodeId second : nodes_) {
        if (second == from || second == to || second == first) continue;
        if (!avoids({first, second}, slowest) || !avoids({second, to}, slowest)) continue;
        found.push_back(
            {begin + ways_.at({first, second}).s_per_bit + ways_.at({second, to}).s_per_bit,
             {first, second}});
      }
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  /// The resources that a route uses and the direct way does not. Routes must not share these.
  std::set<ResourceId> own_resources(const NodePair& pair, const Candidate& route) const {
    std::set<ResourceId> own;
    api::NodeId at = pair.first;
    for (std::size_t leg = 0; leg <= route.via.size(); ++leg) {
      const api::NodeId next = leg < route.via.size() ? route.via[leg] : pair.second;
      const auto& used = ways_.at({at, next}).resources;
      own.insert(used.begin(), used.end());
      at = next;
    }
    for (const ResourceId shared : ways_.at(pair).resources) own.erase(shared);
    return own;
  }

 private:
  static_assert(kMaxRelays == 2, "candidates() looks for ways over one and over two relays");

  /// The slowest resources of a way; empty if nothing limits it, or if there is no way.
  std::vector<ResourceId> slowest_of(const Way& way) const {
    std::vector<ResourceId> slowest;
    for (const ResourceId resource : way.resources) {
      const bool limits = static_cast<double>(routes_.bits_per_s(resource)) <= way.bits_per_s;
      if (way.open && limits) slowest.push_back(resource);
    }
    return slowest;
  }

  bool avoids(const NodePair& leg, const std::vector<ResourceId>& resources) const {
    const Way& way = ways_.at(leg);
    return way.open && std::none_of(way.resources.begin(), way.resources.end(), [&](ResourceId r) {
             return std::find(resources.begin(), resources.end(), r) != resources.end();
           });
  }

  Routes routes_;
  std::vector<api::NodeId> nodes_;
  std::map<NodePair, Way> ways_;
};

}  // namespace

namespace {

/// The cheapest routes between a pair of neighbours that share no relay and no resource.
std::vector<api::Route> routes_of(const Ways& ways, const NodePair& pair) {
  std::vector<api::Route> routes;
  std::set<api::NodeId> relays;
  std::set<ResourceId> resources;
  for (const Candidate& candidate : ways.candidates(pair)) {
    const std::set<ResourceId> own = ways.own_resources(pair, candidate);
    const auto is_used = [](const auto& used) {
      return [&used](auto one) { return used.count(one) > 0; };
    };
    if (routes.size() == kMaxRoutes) break;
    if (std::any_of(candidate.via.begin(), candidate.via.end(), is_used(relays))) continue;
    if (std::any_of(own.begin(), own.end(), is_used(resources))) continue;
    relays.insert(candidate.via.begin(), candidate.via.end());
    resources.insert(own.begin(), own.end());
    routes.push_back({.from = pair.first, .to = pair.second, .via = candidate.via});
  }
  return routes;
}

bool is_in(const Network& network, api::NodeId node) {
  return node < network.nodes.size() && network.nodes[node].site != kNoSite;
}

}  // namespace

void add_auxiliary_routes(api::Plan& plan, const Network& network) {
  plan.routes.clear();
  if (plan.members.size() > kMaxRoutedMembers) return;
  for (const api::Member& member : plan.members) {
    if (!is_in(network, member.node)) return;
  }
  const Ways ways(plan, network);
  for (const NodePair& pair : neighbours_in(plan)) {
    const std::vector<api::Route> routes = routes_of(ways, pair);
    plan.routes.insert(plan.routes.end(), routes.begin(), routes.end());
  }
}

}  // namespace gradplane::plan
