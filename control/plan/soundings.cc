// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/soundings.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/plan/routes.h"
#include "control/plan/validate_routes.h"
#include "dataplane/model/limits.h"

namespace gradplane::plan {
namespace {

SiteId site_of(const Network& network, api::NodeId node) {
  return node < network.nodes.size() ? network.nodes[node].site : kNoSite;
}

/// The member at each site that sends soundings and gets them.
std::map<SiteId, api::NodeId> members_that_sound(const api::Plan& plan, const Network& network,
                                                 const std::set<NodePair>& neighbours) {
  std::map<SiteId, api::NodeId> chosen;
  for (const auto& [a, b] : neighbours) {  // in the order of a
    const SiteId site = site_of(network, a);
    if (site != kNoSite && site != site_of(network, b)) chosen.emplace(site, a);
  }
  for (const api::Member& member : plan.members) {
    const SiteId site = site_of(network, member.node);
    if (site != kNoSite) chosen.emplace(site, member.node);
  }
  return chosen;
}

/// Whether packets from one node to the other cross this link and no other one.
bool takes_only(Routes& routes, api::NodeId from, api::NodeId to, ResourceId link) {
  const std::size_t links = routes.network().links.size();
  const Way& way = routes.between_nodes(from, to);
  const auto is_other = [&](ResourceId r) { return r < links && r != link; };
  const auto is_it = [&](ResourceId r) { return r == link; };
  return way.open && std::any_of(way.resources.begin(), way.resources.end(), is_it) &&
         std::none_of(way.resources.begin(), way.resources.end(), is_other);
}

/// A link that no tree uses, with the members that would send and get its soundings.
struct Unused {
  api::Sounding sounding;
  ResourceId link = 0;
};

/// The next link that a sender sounds: the first, in the order of the file, to the member that the
/// fewest sound. Removes it from `unused`, together with links that packets between these members
/// do not take.
std::optional<api::Sounding> take_next(std::vector<Unused>& unused,
                                       const std::map<api::NodeId, std::size_t>& heard,
                                       Routes& routes) {
  const auto count = [&heard](const Unused& u) {
    const auto found = heard.find(u.sounding.to);
    return found == heard.end() ? 0 : found->second;
  };
  while (!unused.empty()) {
    const auto next = std::min_element(
        unused.begin(), unused.end(),
        [&count](const Unused& a, const Unused& b) { return count(a) < count(b); });
    const Unused taken = *next;
    unused.erase(next);
    if (takes_only(routes, taken.sounding.from, taken.sounding.to, taken.link))
      return taken.sounding;
  }
  return std::nullopt;
}

}  // namespace

void add_soundings(api::Plan& plan, const Network& network) {
  plan.soundings.clear();
  if (network.links.empty()) return;
  const std::set<NodePair> neighbours = neighbours_in(plan);
  const auto chosen = members_that_sound(plan, network, neighbours);
  std::set<std::pair<SiteId, SiteId>> used;
  for (const auto& [a, b] : neighbours) used.emplace(site_of(network, a), site_of(network, b));
  std::map<api::NodeId, std::vector<Unused>> unused;  // by sender
  for (std::size_t l = 0; l < network.links.size(); ++l) {
    const Link& link = network.links[l];
    const auto from = chosen.find(link.from);
    const auto to = chosen.find(link.to);
    if (from == chosen.end() || to == chosen.end() || used.count({link.from, link.to}) > 0)
      continue;
    unused[from->second].push_back({{from->second, to->second}, static_cast<ResourceId>(l)});
  }
  Routes routes(network);
  std::map<api::NodeId, std::size_t> heard;
  for (std::size_t turn = 0; turn < kMaxSoundedPeers; ++turn) {
    for (auto& [from, links] : unused) {
      if (plan.soundings.size() == kMaxSoundings) return;
      const std::optional<api::Sounding> next = take_next(links, heard, routes);
      if (!next) continue;
      ++heard[next->to];
      plan.soundings.push_back(*next);
    }
  }
}

Status validate_soundings(const api::Plan& plan) {
  std::set<api::NodeId> members;
  for (const api::Member& member : plan.members) members.insert(member.node);
  std::set<api::Sounding> seen;
  std::map<api::NodeId, std::size_t> sounded;
  for (const api::Sounding& sounding : plan.soundings) {
    const std::string which = "the sounding from node " + std::to_string(sounding.from) +
                              " to node " + std::to_string(sounding.to);
    if (members.count(sounding.from) == 0 || members.count(sounding.to) == 0 ||
        sounding.from == sounding.to) {
      return Error{which + " does not connect two members"};
    }
    if (!seen.insert(sounding).second) return Error{which + " is there twice"};
    if (++sounded[sounding.from] > kMaxSoundedPeers || seen.size() > kMaxSoundings) {
      return Error{which + " is one too many; a node may sound " +
                   std::to_string(kMaxSoundedPeers) + " others, and a plan may have " +
                   std::to_string(kMaxSoundings) + " soundings"};
    }
  }
  return Nothing{};
}

}  // namespace gradplane::plan
