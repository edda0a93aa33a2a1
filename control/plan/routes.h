// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "control/plan/network.h"

namespace gradplane::plan {

/// A resource with a limited rate: a link, or one direction of the access of a site or a node.
using ResourceId = std::uint32_t;

/// The way of packets from one node or site to another.
struct Way {
  bool open = true;                   // false: there is no way, or something on it is dead
  std::vector<ResourceId> resources;  // on the way, those with a limit
  double rtt_s = 0;
  double loss = 0;        // share of the packets
  double s_per_bit = 0;   // the sum of 1/rate over the resources
  double bits_per_s = 0;  // of the slowest resource; infinite when nothing limits
};

/// The ways of packets through a network, and the resources on them. As with routers, every site
/// sends all packets for one destination over one link. A way is found when it is first needed.
class Routes {
 public:
  /// `network` is valid and outlives this.
  explicit Routes(const Network& network);

  std::size_t resources() const { return rates_.size(); }
  /// The rate of a resource; kUnlimited if it limits nothing.
  std::uint64_t bits_per_s(ResourceId resource) const { return rates_[resource]; }
  /// "link a > b", "down of site b", "up of node 3".
  std::string name(ResourceId resource) const;
  const Network& network() const { return network_; }

  /// The way between two nodes of the network. The result is valid until the next call.
  const Way& between_nodes(api::NodeId from, api::NodeId to);
  /// The way between two sites, without the nodes' accesses. Valid until the next call.
  const Way& between_sites(SiteId from, SiteId to);

 private:
  static constexpr std::uint32_t kNoLink = ~std::uint32_t{0};

  void start();
  void add(ResourceId resource);
  void add_path(Duration rtt, std::uint32_t loss_ppm);
  void cross_sites(SiteId from, SiteId to);
  const Way& finish();
  /// For each site the link that leads to `to`.
  const std::vector<std::uint32_t>& links_towards(SiteId to);

  ResourceId site_up(SiteId site) const { return static_cast<ResourceId>(sites_from_ + 2 * site); }
  ResourceId node_up(api::NodeId n) const { return static_cast<ResourceId>(nodes_from_ + 2 * n); }

  const Network& network_;
  std::size_t sites_from_;
  std::size_t nodes_from_;
  std::vector<std::uint64_t> rates_;
  std::vector<std::vector<std::uint32_t>> links_into_;  // by site
  std::vector<std::vector<std::uint32_t>> towards_;     // by destination
  Way way_;
  double kept_ = 1;  // share of the packets that arrive, on the way so far
};

}  // namespace gradplane::plan
