// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "control/plan/planner.h"

namespace gradplane::plan {

/// The packing bound, in seconds per bit of an all_reduce without overhead: no plan of spanning
/// trees over the sites takes less. Where all nodes with ranks are at one site, its nodes count as
/// sites.
///
/// Give each resource a price, so that the prices add up to 1. The busiest resource is at least as
/// busy as the mean weighted by these prices, and this mean is for any trees at least the cost of
/// the cheapest tree. So every choice of prices gives a lower bound. The best choice gives the
/// packing bound exactly. (It is the dual linear program. For links alone it is the minimum over
/// partitions of crossing capacity / (parts - 1), by Tutte and Nash-Williams.) This function finds
/// it to a few percent by multiplicative weights. With accesses alone the result is exact.
///
/// The bound holds for trees whose edges are those of a SiteGraph. It is an Error if a site without
/// ranks may sum, because trees need not span it.
Result<double> packing_bound_s_per_bit(const PlanRequest& request);

}  // namespace gradplane::plan
