// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/routes.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

#include "dataplane/base/assert.h"

namespace gradplane::plan {
namespace {

constexpr double kMillion = 1e6;
/// If a smaller share of the packets arrives, a way counts as closed, because repairs would never
/// end.
constexpr double kLeastKept = 0.01;

/// The cost of a way so far. kFewestLinks compares the links first; kFastest leaves them at 0.
struct Cost {
  std::uint32_t links = 0;
  double s_per_bit = 0;
  auto operator<=>(const Cost&) const = default;
};

}  // namespace

Routes::Routes(const Network& network)
    : network_(network),
      sites_from_(network.links.size()),
      nodes_from_(sites_from_ + 2 * network.sites.size()),
      links_into_(network.sites.size()),
      towards_(network.sites.size()) {
  rates_.reserve(nodes_from_ + 2 * network.nodes.size());
  for (std::size_t i = 0; i < network.links.size(); ++i) {
    rates_.push_back(network.links[i].bits_per_s);
    if (network.links[i].bits_per_s == 0) continue;
    links_into_[network.links[i].to].push_back(static_cast<std::uint32_t>(i));
  }
  for (const Site& site : network.sites) {
    rates_.push_back(site.access.up_bits_per_s);
    rates_.push_back(site.access.down_bits_per_s);
  }
  for (const Node& node : network.nodes) {
    rates_.push_back(node.access.up_bits_per_s);
    rates_.push_back(node.access.down_bits_per_s);
  }
}

std::string Routes::name(ResourceId resource) const {
  const auto site_name = [this](std::size_t site) {
    const std::string& name = network_.sites[site].name;
    return name.empty() ? "site " + std::to_string(site) : name;
  };
  if (resource < sites_from_) {
    const Link& link = network_.links[resource];
    return "link " + site_name(link.from) + " > " + site_name(link.to);
  }
  const bool of_site = resource < nodes_from_;
  const std::size_t index = resource - (of_site ? sites_from_ : nodes_from_);
  return std::string(index % 2 == 0 ? "up" : "down") + " of " +
         (of_site ? site_name(index / 2)
                  : node_text(network_, static_cast<api::NodeId>(index / 2)));
}

const Way& Routes::between_nodes(api::NodeId from, api::NodeId to) {
  start();
  const bool known = from < network_.nodes.size() && to < network_.nodes.size() &&
                     network_.nodes[from].site != kNoSite && network_.nodes[to].site != kNoSite;
  if (!known) {
    way_.open = false;
    return finish();
  }
  const Node& source = network_.nodes[from];
  const Node& sink = network_.nodes[to];
  add(node_up(from));
  add_path(source.access.rtt, source.access.loss_ppm);
  if (source.site != sink.site) cross_sites(source.site, sink.site);
  add(node_up(to) + 1);
  add_path(sink.access.rtt, sink.access.loss_ppm);
  return finish();
}

const Way& Routes::between_sites(SiteId from, SiteId to) {
  start();
  if (from != to) cross_sites(from, to);
  return finish();
}

void Routes::start() {
  way_.open = true;
  way_.resources.clear();
  way_.rtt_s = way_.s_per_bit = 0;
  way_.bits_per_s = std::numeric_limits<double>::infinity();
  kept_ = 1;
}

void Routes::add(ResourceId resource) {
  const std::uint64_t rate = rates_[resource];
  if (rate == kUnlimited) return;
  if (rate == 0) {
    way_.open = false;
    return;
  }
  way_.resources.push_back(resource);
  way_.s_per_bit += 1 / static_cast<double>(rate);
  way_.bits_per_s = std::min(way_.bits_per_s, static_cast<double>(rate));
}

void Routes::add_path(Duration rtt, std::uint32_t loss_ppm) {
  way_.rtt_s += rtt.to_seconds();
  kept_ *= 1 - loss_ppm / kMillion;
}

void Routes::cross_sites(SiteId from, SiteId to) {
  const Access& leaving = network_.sites[from].access;
  const Access& entering = network_.sites[to].access;
  add(site_up(from));
  add_path(leaving.rtt, leaving.loss_ppm);
  if (!network_.links.empty()) {
    const std::vector<std::uint32_t>& next = links_towards(to);
    for (SiteId at = from; at != to && way_.open;) {
      if (next[at] == kNoLink) {
        way_.open = false;
        break;
      }
      const Link& link = network_.links[next[at]];
      add(next[at]);
      add_path(link.rtt, link.loss_ppm);
      at = link.to;
    }
  }
  add(site_up(to) + 1);
  add_path(entering.rtt, entering.loss_ppm);
}

const Way& Routes::finish() {
  way_.loss = 1 - kept_;
  if (kept_ < kLeastKept) way_.open = false;
  return way_;
}

const std::vector<std::uint32_t>& Routes::links_towards(SiteId to) {
  std::vector<std::uint32_t>& next = towards_[to];
  if (!next.empty()) return next;
  next.assign(network_.sites.size(), kNoLink);
  // Dijkstra's algorithm from the destination, against the direction of the links.
  constexpr Cost kFar{UINT32_MAX, std::numeric_limits<double>::infinity()};
  std::vector<Cost> cost(network_.sites.size(), kFar);
  using Entry = std::pair<Cost, SiteId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  cost[to] = {};
  queue.push({cost[to], to});
  while (!queue.empty()) {
    const auto [at_cost, at] = queue.top();
    queue.pop();
    if (at_cost > cost[at]) continue;
    for (const std::uint32_t index : links_into_[at]) {
      const Link& link = network_.links[index];
      Cost further = at_cost;
      if (network_.routing == Routing::kFewestLinks) ++further.links;
      further.s_per_bit += 1 / static_cast<double>(link.bits_per_s);
      if (further >= cost[link.from]) continue;
      cost[link.from] = further;
      next[link.from] = index;
      queue.push({further, link.from});
    }
  }
  return next;
}

}  // namespace gradplane::plan
