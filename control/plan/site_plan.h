// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <vector>

#include "control/plan/packing.h"
#include "control/plan/planner.h"
#include "control/plan/site_graph.h"

/// Turns a request into sites, and trees over sites into a plan over nodes.
namespace gradplane::plan {

struct Sites {
  Network network;
  std::vector<Place> places;
  std::vector<PlaceId> roots;  // the places that may be roots; empty: all
};

/// The sites of a request, all of which reach each other. Where all nodes with ranks are at one
/// site, each node counts as a site of its own. Fails when there is no network, or when the way
/// between two sites with ranks is closed.
Result<Sites> sites_of(const PlanRequest& request);

/// The rate in bit/s at which each place can send and, at the same time, receive, as its own access
/// and those of its nodes allow.
std::vector<double> access_rates(const Sites& sites);

/// The most trees of a plan with so many members: kMaxTrees, or as many as fit a Prepare message.
std::size_t max_trees_of(std::size_t members);

/// A plan whose trees connect sites as `packing` says. In each tree the nodes of a site send to one
/// node of the site, the one with the least work so far, and only this node sends on. Each tree has
/// `copies`, which share its blocks and may leave sites through different nodes.
Result<api::Plan> plan_of_sites(const PlanRequest& request, const Sites& sites,
                                const Packing& packing, std::size_t copies, PlanKind kind);

/// Shares as weights: whole numbers without a common factor. Small shares become 0.
std::vector<std::uint32_t> weights_of_shares(const std::vector<double>& shares);

}  // namespace gradplane::plan
