// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "control/plan/network.h"
#include "control/plan/predict.h"
#include "dataplane/model/congestion_settings.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/plan_kind.h"

/// All_reduces between distant sites in ns-3: ns-3's links, queues, IP and UDP under the production
/// engine, with a planner's trees. Time is virtual, and everything follows from the scenario.
namespace gradplane::ns3_wan {

/// Every site has one host with one rank. All ranks submit their first rounds at the same time, and
/// each further round when an older one has ended.
struct Scenario {
  plan::Network network;
  PlanKind planner = PlanKind::kPacked;
  std::size_t bytes = 17'000'000;  // of an all_reduce; a multiple of 4
  std::size_t round_bytes = std::size_t{1} << 20;
  std::size_t in_flight = kMaxInFlightRounds;
  std::size_t queue_bytes = 256 << 10;  // before each direction of a link
  CongestionSettings congestion;
  Duration limit = Duration::seconds(3600);
  std::uint64_t seed = 1;  // for losses
};

struct Outcome {
  std::string failure;  // empty: every round ended, and every sum was right
  Duration all_reduce;  // until the last rank has the last sum
  plan::Prediction predicted;
  Duration bound;           // the packing bound, without overhead
  std::uint64_t drops = 0;  // by queues between sites
  std::size_t trees = 0;
};

/// Throws std::invalid_argument if there is no plan for the scenario.
Outcome run(const Scenario& scenario);

/// NetStorm's 9 sites and 13 links with rates drawn from `seed`. With `far`, links have round trips
/// of 10 to 150 ms and lose 0.1 to 2 % of the packets.
plan::Network netstorm(std::uint64_t seed, bool far);

}  // namespace gradplane::ns3_wan
