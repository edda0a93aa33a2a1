// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/network.h"

#include <set>
#include <utility>

namespace gradplane::plan {
namespace {

std::string name_of(const Network& network, std::size_t site) {
  const std::string& name = network.sites[site].name;
  return name.empty() ? "site " + std::to_string(site) : "site " + name;
}

Status check_path(const std::string& what, Duration rtt, std::uint32_t loss_ppm) {
  if (rtt < Duration() || rtt > kMaxRtt)
    return Error{what + " has a round trip of " + std::to_string(rtt.to_seconds()) +
                 " s; 0 to 10 s are accepted"};
  if (loss_ppm > kMaxLossPpm)
    return Error{what + " loses " + std::to_string(loss_ppm) +
                 " of a million packets; at most half of them are accepted"};
  return Nothing{};
}

bool is_rate(std::uint64_t bits_per_s) {
  return bits_per_s <= kMaxBitsPerSecond;
}

Status check_access(const std::string& what, const Access& access) {
  for (const std::uint64_t rate : {access.up_bits_per_s, access.down_bits_per_s}) {
    if (rate != kUnlimited && !is_rate(rate))
      return Error{what + " has a rate of " + std::to_string(rate) +
                   " bit/s; at most 10 Tbit/s are accepted"};
  }
  return check_path(what, access.rtt, access.loss_ppm);
}

Status check_link(const Network& network, const Link& link) {
  if (link.from >= network.sites.size() || link.to >= network.sites.size())
    return Error{"a link has an end that is no site"};
  const std::string what =
      "the link from " + name_of(network, link.from) + " to " + name_of(network, link.to);
  if (link.from == link.to) return Error{what + " connects a site with itself"};
  if (!is_rate(link.bits_per_s))
    return Error{what + " has a rate of " + std::to_string(link.bits_per_s) +
                 " bit/s; at most 10 Tbit/s are accepted"};
  return check_path(what, link.rtt, link.loss_ppm);
}

}  // namespace

Status validate(const Network& network) {
  if (network.sites.empty() || network.sites.size() > kMaxSites)
    return Error{"a network has " + std::to_string(network.sites.size()) +
                 " sites; it may have 1 to " + std::to_string(kMaxSites)};
  if (network.nodes.size() > kMaxNodes)
    return Error{"a network has " + std::to_string(network.nodes.size()) + " nodes; it may have " +
                 std::to_string(kMaxNodes)};
  if (network.links.size() > kMaxLinks)
    return Error{"a network has " + std::to_string(network.links.size()) + " links; it may have " +
                 std::to_string(kMaxLinks)};
  for (std::size_t s = 0; s < network.sites.size(); ++s) {
    const Status good = check_access(name_of(network, s), network.sites[s].access);
    if (!good.ok()) return good;
  }
  for (std::size_t n = 0; n < network.nodes.size(); ++n) {
    const std::string what = "node " + std::to_string(n);
    const Node& node = network.nodes[n];
    if (node.site != kNoSite && node.site >= network.sites.size())
      return Error{what + " is at a site that is not there"};
    if (const Status good = check_access(what, node.access); !good.ok()) return good;
  }
  std::set<std::pair<SiteId, SiteId>> seen;
  for (const Link& link : network.links) {
    if (const Status good = check_link(network, link); !good.ok()) return good;
    if (!seen.emplace(link.from, link.to).second)
      return Error{"there are two links from " + name_of(network, link.from) + " to " +
                   name_of(network, link.to)};
  }
  return Nothing{};
}

std::string node_text(const Network& network, api::NodeId node) {
  const bool named = node < network.nodes.size() && !network.nodes[node].name.empty();
  return "node " + (named ? network.nodes[node].name : std::to_string(node));
}

Network network_of_accesses(const std::vector<Access>& nodes) {
  Network network;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    network.sites.push_back({});
    network.nodes.push_back({static_cast<SiteId>(n), nodes[n], {}});
  }
  return network;
}

}  // namespace gradplane::plan
