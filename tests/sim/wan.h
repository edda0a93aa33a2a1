// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "control/plan/planner.h"
#include "tests/sim/cluster.h"

/// Whole all_reduces of the production engine over networks of sites, under the plans of planners.
namespace gradplane::sim {

/// What the links of a WAN are like besides their rates.
struct WanPaths {
  bool delayed = false;  // 10 to 150 ms, one way, the same in both directions
  bool lossy = false;    // 0.1 to 2 %, each direction for itself
  /// As the testbed has it (docs/measuring.md): a quarter of the rates, and the delays are those of
  /// a round trip.
  bool testbed = false;
};

/// NetStorm's 9 sites and 13 links with the rates that the seed draws. The same seed gives the same
/// rates whatever the paths are like.
plan::Network wan_network(std::uint64_t seed, const WanPaths& paths);

struct WanLoad {
  std::uint64_t bytes = 0;        // of one all_reduce
  std::uint32_t all_reduces = 1;  // one after the other
  std::size_t round_bytes = kMaxRoundBytes;
  std::size_t queue_bytes = 256 << 10;  // of a link, or what it fills in a round trip
  CongestionSettings congestion = {};
  float bound = 0;  // share of each rank's blocks that a round may miss; 0: every round is exact
};

/// A rank on every node of a network, and what planners are asked then.
plan::PlanRequest wan_request(const plan::Network& network, PlanKind planner, const WanLoad& load);

/// All nodes of the network under a plan.
Scenario wan_scenario(const std::vector<SitesAt>& networks, const api::Plan& plan,
                      const WanLoad& load, std::uint64_t seed);

/// How long each all_reduce of a run took.
std::vector<double> all_reduce_times_s(const Scenario& scenario, const Outcome& outcome);

/// What all_reduces took under one plan.
struct WanResult {
  PlanKind planner = PlanKind::kStar;
  std::size_t trees = 0;
  std::uint16_t height = 0;
  std::string bottleneck;
  double predicted_s = 0;
  double bound_s = 0;  // no plan of trees is faster
  std::vector<double> times_s;
  double sent_again = 0;  // share of all blocks
  double needless = 0;    // the same, of those whose receiver had them
  // Of all frames on all links.
  double lost_at_random = 0;
  double dropped_by_queues = 0;
  double missing = 0;  // share of all contributions, of rounds under bounds
  std::uint64_t dropped = 0;
  std::string failure;  // empty: all sums were right

  double mean_s() const;
};

WanResult run_wan(const plan::Network& network, PlanKind planner, const WanLoad& load,
                  std::uint64_t seed);

}  // namespace gradplane::sim
