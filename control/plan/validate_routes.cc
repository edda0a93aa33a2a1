// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/validate_routes.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/model/limits.h"

namespace gradplane::plan {
namespace {

/// What the routes of one pair of nodes use so far.
struct Used {
  std::size_t routes = 0;
  std::set<api::NodeId> relays;
};

Error error(const api::Route& route, const std::string& what) {
  return Error{"the route from node " + std::to_string(route.from) + " to node " +
               std::to_string(route.to) + " " + what};
}

Status check_route(const api::Route& route, const std::set<api::NodeId>& members, Used& used) {
  if (route.via.empty() || route.via.size() > kMaxRelays) {
    return error(route, "has " + std::to_string(route.via.size()) + " relays; it may have 1 to " +
                            std::to_string(kMaxRelays));
  }
  if (++used.routes > kMaxRoutes) {
    return error(route, "is one too many; a pair of nodes may have " + std::to_string(kMaxRoutes));
  }
  for (const api::NodeId relay : route.via) {
    if (members.count(relay) == 0) {
      return error(route, "leads over node " + std::to_string(relay) + ", which is no member");
    }
    if (relay == route.from || relay == route.to) return error(route, "is a circle");
    if (!used.relays.insert(relay).second) {
      return error(route, "uses node " + std::to_string(relay) + " a second time");
    }
  }
  return Nothing{};
}

}  // namespace

std::set<NodePair> neighbours_in(const api::Plan& plan) {
  std::set<NodePair> pairs;
  for (const api::Tree& tree : plan.trees) {
    for (std::size_t m = 0; m < plan.members.size(); ++m) {
      if (tree.parent[m] == api::kNoNode) continue;
      pairs.emplace(plan.members[m].node, tree.parent[m]);
      pairs.emplace(tree.parent[m], plan.members[m].node);
    }
  }
  return pairs;
}

Status validate_routes(const api::Plan& plan) {
  if (plan.routes.empty()) return Nothing{};
  const std::set<NodePair> neighbours = neighbours_in(plan);
  std::set<api::NodeId> members;
  for (const api::Member& member : plan.members) members.insert(member.node);
  std::map<NodePair, Used> used;
  for (const api::Route& route : plan.routes) {
    const NodePair pair{route.from, route.to};
    if (neighbours.count(pair) == 0) return error(route, "connects no neighbours of a tree");
    if (Status good = check_route(route, members, used[pair]); !good.ok()) return good;
  }
  return Nothing{};
}

}  // namespace gradplane::plan
