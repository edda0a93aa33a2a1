// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "control/plan/network.h"
#include "control/plan/planner.h"
#include "control/plan/routes.h"
#include "control/plan/shares.h"

namespace gradplane::plan {

/// The number of a site among the sites that have a part in the job.
using PlaceId = std::uint16_t;
inline constexpr PlaceId kNoPlace = 0xffff;

struct Place {
  SiteId site = kNoSite;
  std::vector<api::NodeId> training;  // nodes with ranks
  std::vector<api::NodeId> summing;   // nodes with ranks, and those without that may sum
};

/// The sites whose nodes host ranks or may sum, by site. Fails when a node with ranks has no site.
Result<std::vector<Place>> places_of(const PlanRequest& request, const Network& network);

/// A tree over places. It may leave out places without ranks.
struct PlaceTree {
  PlaceId root = kNoPlace;
  std::vector<PlaceId> parent;  // by place; kNoPlace at the root and outside
};

/// Which sites can be neighbours in a tree, and which resources an edge between them uses. Two
/// sites can be neighbours when packets go between them in both directions without passing a third
/// site that has a part in the job, because that one could sum.
///
/// The accesses of all nodes of a site count together, because each tree may leave the site through
/// another node.
class SiteGraph {
 public:
  struct Edge {
    PlaceId a = 0;
    PlaceId b = 0;
    double up_bits_per_s = 0;    // from a to b
    double down_bits_per_s = 0;  // from b to a
    double rtt_s = 0;
    std::vector<Load> loads;  // in both directions: pushes go one way and results the other
  };
  struct Arc {
    PlaceId to = 0;
    std::uint32_t edge = 0;
  };

  /// `places` must outlive this.
  SiteGraph(Routes& routes, const Network& network, const std::vector<Place>& places);

  std::size_t size() const { return places_.size(); }
  const std::vector<Place>& places() const { return places_; }
  const std::vector<Edge>& edges() const { return edges_; }
  const std::vector<Arc>& arcs(PlaceId place) const { return arcs_[place]; }
  /// The number of resources; Load::resource is below this.
  std::size_t resources() const { return resources_; }

  /// A cheap tree from `root` over all places. Its height is at most `max_height`, or as low as
  /// possible if no tree is so low. Without a limit it is the cheapest tree. `cost` is by edge. All
  /// places must be connected.
  PlaceTree cheap_tree(const std::vector<double>& cost, PlaceId root,
                       std::uint32_t max_height) const;
  /// The number of edges on the shortest way from `root`, by place; UINT32_MAX without a way.
  std::vector<std::uint32_t> hops_from(PlaceId root) const;
  std::vector<Load> loads_of(const PlaceTree& tree) const;
  /// The cost of each edge under these prices of resources.
  std::vector<double> edge_costs(const std::vector<double>& prices) const;
  /// The same tree without the leaves that have nothing to send, and with the root from which the
  /// longest way is shortest. `roots` are the places that may be the root; empty: all.
  PlaceTree trimmed(const PlaceTree& tree, const std::vector<PlaceId>& roots) const;

 private:
  void add_edge(Routes& routes, PlaceId a, PlaceId b);
  void add_place_limits(const Network& network);
  std::uint32_t edge_between(PlaceId a, PlaceId b) const;
  std::vector<PlaceId> neighbours_of(const Network& network, PlaceId place,
                                     const std::vector<PlaceId>& place_of,
                                     const std::vector<std::vector<SiteId>>& linked) const;

  const std::vector<Place>& places_;
  std::vector<double> place_limits_;  // bit/s: up and down for each place
  std::size_t routes_resources_;
  std::size_t resources_;
  std::vector<Edge> edges_;
  std::vector<std::vector<Arc>> arcs_;
};

}  // namespace gradplane::plan
