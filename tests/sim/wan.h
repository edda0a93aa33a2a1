// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "control/plan/planner.h"
#include "tests/sim/cluster.h"

/// all_reduces of the production engine over networks of sites, under the plans of planners.
namespace gradplane::sim {

/// The properties of WAN links besides their rates.
struct WanPaths {
  bool delayed = false;  // 10 to 150 ms one way, the same in both directions
  bool lossy = false;    // 0.1 to 2 %, for each direction separately
  /// As on the testbed (docs/measuring.md): rates are a quarter, and delays are those of a round
  /// trip.
  bool testbed = false;
};

/// NetStorm's 9 sites and 13 links with rates drawn from the seed. The rates do not depend on
/// `paths`.
plan::Network wan_network(std::uint64_t seed, const WanPaths& paths);

struct WanLoad {
  std::uint64_t bytes = 0;        // of one all_reduce
  std::uint32_t all_reduces = 1;  // one after the other
  std::size_t round_bytes = kMaxRoundBytes;
  std::size_t queue_bytes = 256 << 10;  // of a link, if that is more than its bytes of a round trip
  CongestionSettings congestion = {};
  float bound = 0;  // the share of each rank's blocks that may be missing; 0: every round is exact
};

/// The request for a plan for one rank on every node of a network.
plan::PlanRequest wan_request(const plan::Network& network, PlanKind planner, const WanLoad& load);

/// A scenario in which all nodes of the network run under a plan.
Scenario wan_scenario(const std::vector<SitesAt>& networks, const api::Plan& plan,
                      const WanLoad& load, std::uint64_t seed);

/// The duration of each all_reduce in a run, in seconds.
std::vector<double> all_reduce_times_s(const Scenario& scenario, const Outcome& outcome);

/// The times of all_reduces under one plan.
struct WanResult {
  PlanKind planner = PlanKind::kStar;
  std::size_t trees = 0;
  std::uint16_t height = 0;
  std::string bottleneck;
  double predicted_s = 0;
  double bound_s = 0;  // no plan of trees is faster
  std::vector<double> times_s;
  double sent_again = 0;  // retransmitted share of all blocks
  // Share of all blocks that were retransmitted although the receiver had them.
  double needless = 0;
  // As shares of all frames on all links.
  double lost_at_random = 0;
  double dropped_by_queues = 0;
  double missing = 0;  // missing share of all contributions, in rounds with bounds
  std::uint64_t dropped = 0;
  std::string failure;  // empty: all sums were right

  double mean_s() const;
};

WanResult run_wan(const plan::Network& network, PlanKind planner, const WanLoad& load,
                  std::uint64_t seed);

}  // namespace gradplane::sim
