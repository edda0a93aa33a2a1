// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/site_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "control/plan/soundings.h"
#include "control/plan/validate.h"
#include "control/protocol/node_messages.h"
#include "dataplane/model/limits.h"

namespace gradplane::plan {
namespace {

constexpr double kShareScale = 10000;

/// The most bytes that session/plan_codec needs for each member, rank and tree, and for the rest.
constexpr std::size_t kMemberBytes = 3;
constexpr std::size_t kRankBytes = 2;
constexpr std::size_t kTreeBytes = 8;
constexpr std::size_t kPlanHeadBytes = 13;
constexpr std::size_t kSoundingsBytes = 4 + kMaxSoundings * 2 * sizeof(api::NodeId);
static_assert(kPlanHeadBytes + kSoundingsBytes + kMaxNodes * kMemberBytes + kMaxRanks * kRankBytes +
                      kTreeBytes + kMaxNodes * sizeof(api::NodeId) <=
                  protocol::kMaxPlanBytes,
              "every plan may have one tree");

/// A network in which each node of one site is a site of its own. They all reach each other.
Network network_of_nodes(const PlanRequest& request, const Network& network, SiteId site) {
  Network flat;
  for (std::size_t n = 0; n < network.nodes.size(); ++n) {
    Node& node = flat.nodes.emplace_back(network.nodes[n]);
    if (node.site != site) {
      node.site = kNoSite;
      continue;
    }
    node.site = static_cast<SiteId>(flat.sites.size());
    flat.sites.push_back({node_text(request, static_cast<api::NodeId>(n)), {}});
  }
  return flat;
}

bool is_open(Routes& routes, const Place& a, const Place& b) {
  if (!routes.between_sites(a.site, b.site).open) return false;
  return routes.between_sites(b.site, a.site).open;
}

std::string site_text(const Sites& sites, const Place& place) {
  const std::string& name = sites.network.sites[place.site].name;
  return name.empty() ? "site " + std::to_string(place.site) : "site " + name;
}

std::uint64_t rate_of(const Node& node) {
  return std::min(node.access.up_bits_per_s, node.access.down_bits_per_s);
}

/// Leaves out nodes that cannot sum, and fails if ranks cannot be reached.
Status check_ways(Sites& sites) {
  std::vector<Place>& places = sites.places;
  for (Place& place : places) {
    for (const api::NodeId node : place.training) {
      if (rate_of(sites.network.nodes[node]) == 0)
        return Error{node_text(sites.network, node) + " of " + site_text(sites, place) +
                     " hosts ranks of the job and has an access of rate 0"};
    }
    std::erase_if(place.summing,
                  [&sites](api::NodeId node) { return rate_of(sites.network.nodes[node]) == 0; });
  }
  Routes routes(sites.network);
  const auto first = std::find_if(places.begin(), places.end(),
                                  [](const Place& place) { return !place.training.empty(); });
  const Place hub = *first;
  for (const Place& place : places) {
    if (place.training.empty() || place.site == hub.site || is_open(routes, hub, place)) continue;
    return Error{
        "there is no way between " + site_text(sites, hub) + " and " + site_text(sites, place) +
        ", which both host ranks of the job: a link is missing, has rate 0 or loses nearly all"};
  }
  std::erase_if(places, [&](const Place& place) {
    return place.summing.empty() || (place.site != hub.site && !is_open(routes, hub, place));
  });
  return Nothing{};
}

/// Chooses the node of each site that sums for the site in a tree.
class Heads {
 public:
  Heads(const PlanRequest& request, const Sites& sites) : request_(request), sites_(sites) {}

  /// The node with the least work so far, relative to the rate of its access.
  api::NodeId choose(const Place& place, bool is_root, std::size_t edges, double share) {
    const auto& training = place.training;
    const auto work = [&](api::NodeId node) {
      const bool trains = std::find(training.begin(), training.end(), node) != training.end();
      return share * static_cast<double>(edges + training.size() - (trains ? 1 : 0));
    };
    api::NodeId best = api::kNoNode;
    double least = 0;
    for (const api::NodeId node : place.summing) {
      if (is_root && !may_be_root(node)) continue;
      const double load =
          (done_[node] + work(node)) / static_cast<double>(rate_of(sites_.network.nodes[node]));
      if (best != api::kNoNode && load >= least) continue;
      best = node;
      least = load;
    }
    for (const api::NodeId node : training)
      if (node != best) done_[node] += share;
    done_[best] += work(best);
    return best;
  }

 private:
  bool may_be_root(api::NodeId node) const {
    const auto& roots = request_.root_candidates;
    return roots.empty() || std::find(roots.begin(), roots.end(), node) != roots.end();
  }

  const PlanRequest& request_;
  const Sites& sites_;
  std::map<api::NodeId, double> done_;  // work by node: the share of the blocks for each edge
};

/// A tree over nodes, by its edges, before the members of the plan are known.
struct NodeTree {
  api::NodeId root = api::kNoNode;
  std::map<api::NodeId, api::NodeId> parent;
};

NodeTree node_tree_of(const Sites& sites, const PlaceTree& tree, double share, Heads& heads) {
  std::vector<std::size_t> edges(sites.places.size(), 0);
  for (PlaceId p = 0; p < edges.size(); ++p) {
    if (tree.parent[p] == kNoPlace) continue;
    ++edges[p];
    ++edges[tree.parent[p]];
  }
  std::vector<api::NodeId> head(edges.size(), api::kNoNode);
  for (PlaceId p = 0; p < edges.size(); ++p) {
    if (p == tree.root || tree.parent[p] != kNoPlace)
      head[p] = heads.choose(sites.places[p], p == tree.root, edges[p], share);
  }
  NodeTree nodes{head[tree.root], {}};
  for (PlaceId p = 0; p < edges.size(); ++p) {
    for (const api::NodeId node : sites.places[p].training)
      if (node != head[p]) nodes.parent[node] = head[p];
    if (tree.parent[p] != kNoPlace) nodes.parent[head[p]] = head[tree.parent[p]];
  }
  return nodes;
}

}  // namespace

Result<Sites> sites_of(const PlanRequest& request) {
  if (!request.network)
    return Error{
        "nothing is known of the network; write a section `network`, or port.link_rate of "
        "every node, into the coordinator's file"};
  Result<std::vector<Place>> places = places_of(request, *request.network);
  if (!places.ok()) return places.error();
  Sites sites{*request.network, std::move(places.value()), {}};
  const auto trains = [](const Place& place) { return !place.training.empty(); };
  if (std::count_if(sites.places.begin(), sites.places.end(), trains) == 1) {
    const Place only = *std::find_if(sites.places.begin(), sites.places.end(), trains);
    sites.network = network_of_nodes(request, sites.network, only.site);
    places = places_of(request, sites.network);
    if (!places.ok()) return places.error();
    sites.places = std::move(places.value());
  }
  if (Status status = check_ways(sites); !status.ok()) return status.error();
  for (PlaceId p = 0; p < sites.places.size(); ++p) {
    const auto& summing = sites.places[p].summing;
    if (std::find_first_of(summing.begin(), summing.end(), request.root_candidates.begin(),
                           request.root_candidates.end()) != summing.end())
      sites.roots.push_back(p);
  }
  if (sites.roots.empty() && !request.root_candidates.empty())
    return Error{"none of the nodes that may be roots is in the network and can be reached"};
  return sites;
}

std::vector<double> access_rates(const Sites& sites) {
  const auto bits = [](std::uint64_t rate) {
    return rate == kUnlimited ? std::numeric_limits<double>::infinity() : static_cast<double>(rate);
  };
  std::vector<double> rates;
  for (const Place& place : sites.places) {
    double up = 0;
    double down = 0;
    for (const api::NodeId node : place.summing) {
      up += bits(sites.network.nodes[node].access.up_bits_per_s);
      down += bits(sites.network.nodes[node].access.down_bits_per_s);
    }
    const Access& access = sites.network.sites[place.site].access;
    rates.push_back(std::min({up, down, bits(access.up_bits_per_s), bits(access.down_bits_per_s)}));
  }
  return rates;
}

std::size_t max_trees_of(std::size_t members) {
  const std::size_t rest = protocol::kMaxPlanBytes - kPlanHeadBytes - kSoundingsBytes -
                           members * kMemberBytes - kMaxRanks * kRankBytes;
  return std::min(kMaxTrees, rest / (kTreeBytes + members * sizeof(api::NodeId)));
}

std::vector<std::uint32_t> weights_of_shares(const std::vector<double>& shares) {
  std::vector<std::uint32_t> weights;
  std::uint32_t common = 0;
  for (const double share : shares) {
    weights.push_back(static_cast<std::uint32_t>(std::lround(share * kShareScale)));
    common = std::gcd(common, weights.back());
  }
  for (std::uint32_t& weight : weights) weight /= std::max(common, std::uint32_t{1});
  return weights;
}

Result<api::Plan> plan_of_sites(const PlanRequest& request, const Sites& sites,
                                const Packing& packing, std::size_t copies, PlanKind kind) {
  std::vector<NodeTree> trees;
  std::vector<double> shares;
  Heads heads(request, sites);
  for (std::size_t copy = 0; copy < copies; ++copy) {
    for (std::size_t t = 0; t < packing.trees.size(); ++t) {
      shares.push_back(packing.shares[t] / static_cast<double>(copies));
      trees.push_back(node_tree_of(sites, packing.trees[t], shares.back(), heads));
    }
  }
  const std::vector<std::uint32_t> weights = weights_of_shares(shares);
  std::map<api::NodeId, api::Member> members;
  for (const api::Member& member : request.members) {
    if (member.ranks.empty()) continue;
    members[member.node] = member;
    std::sort(members[member.node].ranks.begin(), members[member.node].ranks.end());
  }
  for (std::size_t t = 0; t < trees.size(); ++t) {
    if (weights[t] == 0) continue;
    members[trees[t].root].node = trees[t].root;
    for (const auto& [node, parent] : trees[t].parent) {
      members[node].node = node;
      members[parent].node = parent;
    }
  }
  api::Plan plan{request.epoch, request.activation_round, {}, {}, kind};
  for (auto& [node, member] : members) plan.members.push_back(std::move(member));
  for (std::size_t t = 0; t < trees.size(); ++t) {
    if (weights[t] == 0) continue;
    api::Tree& tree = plan.trees.emplace_back();
    tree.weight = weights[t];
    tree.root = trees[t].root;
    for (const api::Member& member : plan.members) {
      const auto up = trees[t].parent.find(member.node);
      tree.parent.push_back(up == trees[t].parent.end() ? api::kNoNode : up->second);
    }
  }
  if (Status status = validate(plan); !status.ok()) return status.error();
  return plan;
}

}  // namespace gradplane::plan
