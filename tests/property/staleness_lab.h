// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "control/plan/selection_online.h"
#include "dataplane/model/staleness.h"
#include "tests/property/compute_times.h"

/// A training under bounded staleness in virtual time: each rank computes, multicasts its update,
/// and begins its next round when its multicast is done and staleness allows it. Flows share the
/// links without delay or packets, as in the simulator of the paper (SELMCAST, section VI).
namespace gradplane::testing {

enum class Selector : std::uint8_t { kRandom, kPublished, kOnline };

enum class Sharing : std::uint8_t {
  kFair,     // max-min
  kUrgency,  // more urgent multicasts first, those of one urgency max-min
  kTime,     // who has less time first
};

struct Death {
  double at_s = 0;
  std::size_t rank = 0;
};

struct StalenessCase {
  plan::OnlineRequest request;  // without ranks: they are drawn
  std::size_t ranks = 50;
  double spread = 0.5;  // links have 40 Gbit/s x (1 + spread x u), with u uniform from -1 to 1
  std::uint32_t bound_rounds = 4;
  Selector selector = Selector::kOnline;
  Sharing sharing = Sharing::kUrgency;
  Workload workload = Workload::kLstm;
  double straggler = 1;  // how many times as long rank 0 computes
  double restarts_per_s = 0;
  std::vector<Death> deaths;
  double horizon_s = 40;
  std::uint64_t seed = 1;
};

/// The paper's case: 50 ranks, updates of 200 MB, 0.3 n receivers, freshness and bound 4.
StalenessCase published_case(Selector selector, Sharing sharing, Workload workload);

struct StalenessResult {
  double utilisation = 0;  // the share of time in which ranks that live compute
  double scale = 0;        // receivers of an update over ranks
  std::uint64_t updates = 0;
  std::uint64_t restarts = 0;
  std::uint64_t dropped = 0;         // receivers that lost a transfer under way
  std::uint64_t digest = 0;          // of who received what when
  std::uint64_t added_again = 0;     // receivers that a multicast did not have before
  std::uint64_t too_few = 0;         // updates with too few receivers
  std::uint64_t too_long_apart = 0;  // pairs that did not meet in freshness + 1 rounds
  std::uint64_t too_far_ahead = 0;   // rounds that began beyond the bound
  std::uint64_t idle_in_vain = 0;    // ranks that wait although nobody is too far behind
  std::uint64_t fewest_rounds = 0;   // of the ranks that live
};

StalenessResult train(const StalenessCase& settings);

}  // namespace gradplane::testing
