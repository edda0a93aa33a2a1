// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <vector>

#include "control/plan/packing.h"
#include "control/plan/planner.h"
#include "control/plan/site_graph.h"

/// From a request to sites, and from trees over sites to a plan over nodes.
namespace gradplane::plan {

struct Sites {
  Network network;
  std::vector<Place> places;
  std::vector<PlaceId> roots;  // the places that may be roots; none: all
};

/// The sites of a request, all of which reach each other. Where all nodes with ranks are at one
/// site, each node counts as a site of its own. Fails when there is no network, or when the way
/// between two sites with ranks is closed.
Result<Sites> sites_of(const PlanRequest& request);

/// What each place both sends and receives at most, in bit/s: by its own access and its nodes'.
std::vector<double> access_rates(const Sites& sites);

/// The most trees of a plan for these members: kMaxTrees, or what fits a Prepare.
std::size_t max_trees_of(std::size_t members);

/// A plan whose trees go over sites as `packing` says. In each tree the nodes of a site send to one
/// node of it, the one that has least to do so far, and one copy leaves the site. `copies` of each
/// tree share its blocks and may leave sites through different nodes.
Result<api::Plan> plan_of_sites(const PlanRequest& request, const Sites& sites,
                                const Packing& packing, std::size_t copies, PlanKind kind);

/// Shares as whole numbers without a common factor. Small shares become 0.
std::vector<std::uint32_t> weights_of_shares(const std::vector<double>& shares);

}  // namespace gradplane::plan
