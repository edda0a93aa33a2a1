// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "control/plan/planner.h"

namespace gradplane::plan {

/// What no plan of spanning trees over the sites falls below, in seconds per bit of an all_reduce
/// without overhead: the packing bound. Where all nodes with ranks are at one site, its nodes count
/// as sites.
///
/// Give each resource a price, in sum 1. The busiest resource is at least as busy as the mean at
/// these prices, and the mean of any trees is at least the cheapest tree. So every choice of prices
/// gives a bound. The best choice gives the packing bound exactly (it is the dual linear program;
/// for links alone it is the minimum over partitions of crossing capacity / (parts - 1), by Tutte
/// and Nash-Williams). This one is found by multiplicative weights, to a few percent. With accesses
/// alone it is exact.
///
/// It holds for trees whose edges are those of a SiteGraph. An Error where a site without ranks may
/// sum: trees may leave it out, or use it.
Result<double> packing_bound_s_per_bit(const PlanRequest& request);

}  // namespace gradplane::plan
