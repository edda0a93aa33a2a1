// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "control/plan/selection_online.h"
#include "dataplane/model/staleness.h"
#include "tests/property/compute_times.h"

/// A training under bounded staleness in virtual time. Each rank computes, multicasts its update,
/// and begins its next round when the multicast is done and the staleness bound allows it. Flows
/// share the links without delay or packets, as in the paper's simulator (SELMCAST, section VI).
namespace gradplane::testing {

enum class Selector : std::uint8_t { kRandom, kPublished, kOnline };

enum class Sharing : std::uint8_t {
  kFair,     // max-min
  kUrgency,  // more urgent multicasts first; those of equal urgency max-min
  kTime,     // multicasts with less time left first
};

struct Death {
  double at_s = 0;
  std::size_t rank = 0;
};

struct StalenessCase {
  plan::OnlineRequest request;  // its ranks are drawn
  std::size_t ranks = 50;
  double spread = 0.5;  // links have 40 Gbit/s x (1 + spread x u), with u uniform from -1 to 1
  std::uint32_t bound_rounds = 4;
  Selector selector = Selector::kOnline;
  Sharing sharing = Sharing::kUrgency;
  Workload workload = Workload::kLstm;
  double straggler = 1;  // by which factor rank 0 computes longer
  double restarts_per_s = 0;
  std::vector<Death> deaths;
  double horizon_s = 40;
  std::uint64_t seed = 1;
};

/// The paper's case: 50 ranks, updates of 200 MB, 0.3 n receivers, freshness 4 and bound 4.
StalenessCase published_case(Selector selector, Sharing sharing, Workload workload);

struct StalenessResult {
  double utilisation = 0;  // share of the time in which live ranks compute
  double scale = 0;        // mean receivers of an update, as a share of the ranks
  std::uint64_t updates = 0;
  std::uint64_t restarts = 0;
  std::uint64_t dropped = 0;      // receivers that lost a transfer in progress
  std::uint64_t digest = 0;       // a hash of all deliveries and their times
  std::uint64_t added_again = 0;  // receivers that a multicast was given while it was in progress
  std::uint64_t too_few = 0;      // updates with too few receivers
  std::uint64_t too_long_apart = 0;  // pairs that did not meet in freshness + 1 rounds
  std::uint64_t too_far_ahead = 0;   // rounds that began although the bound did not allow it
  std::uint64_t idle_in_vain = 0;    // ranks that wait although no rank is too far behind
  std::uint64_t fewest_rounds = 0;   // of a live rank
};

StalenessResult train(const StalenessCase& settings);

}  // namespace gradplane::testing
