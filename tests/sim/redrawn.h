// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/config/config.h"
#include "tests/sim/cluster.h"
#include "tests/sim/seeds.h"
#include "tests/sim/session_node.h"
#include "tests/sim/switch_watch.h"

/// Whole daemons in virtual time, but for their threads and sockets: engines over a network of
/// sites, and above them the session, its coordinator and the planners. What the engines measure
/// of links that change leads to other plans, and coordinators die on the way.
namespace gradplane::sim {

/// What happens to a coordinator.
enum class Misfortune : std::uint8_t { kDies, kRestarts, kPauses, kIsCutOff, kCount };
inline constexpr std::size_t kMisfortunes = static_cast<std::size_t>(Misfortune::kCount);
std::string_view misfortune_name(Misfortune misfortune);

struct RedrawnStrike {
  Strike when;
  Misfortune what = Misfortune::kDies;
  Duration lasts;  // until it is back; without meaning for kDies
};

/// A whole run, decided before it starts.
struct RedrawnScenario {
  /// Rounds, trainers and links. Its plan has the members that host ranks, and no trees: the
  /// session has them made.
  Scenario base;
  /// As all nodes have it, but for `self`. Nodes without ranks that do not aggregate have no part
  /// in the job.
  config::Config config;
  std::vector<RedrawnStrike> strikes;  // one after the other, at most one for each redraw
  /// A node that may sum and whose daemon starts later: first plans are made without it.
  std::optional<api::NodeId> late;
  Duration late_by;
  SessionNode::Pace pace;
  /// When all ranks have so many rounds, an operator asks for this plan, and everything waits until
  /// all nodes have it; 0: nobody asks.
  std::uint32_t ask_at_round = 0;
  session::PlanChoice ask;
  Duration rests;  // between the last round and the end of the job
  /// No more than this passes between two rounds.
  Duration longest_pause;
};

struct RedrawnTotals {
  std::uint64_t runs = 0;
  std::uint64_t redraws = 0;
  std::uint64_t unstruck = 0;  // misfortunes whose moment never came
  std::array<std::array<std::uint64_t, kMisfortunes>, kSwitchPhases> struck{};
  std::uint64_t takeovers = 0;               // runs that ended under another coordinator
  std::uint64_t redraws_after_takeover = 0;  // that another coordinator than the first had prepared
  std::uint64_t relayed = 0;                 // blocks, over auxiliary routes
  std::uint64_t late = 0;  // runs at whose end the node that started later was in the plan
  ToleranceTotals tolerance;
  /// The longest time without a round that is complete everywhere: before any misfortune, and after
  /// one in each phase.
  Duration longest_before;
  std::array<Duration, kSwitchPhases> longest_after{};
  void add(const RedrawnTotals& other);
};

/// A moment of a run.
struct RedrawnMark {
  Instant at;
  SessionNode::ControlTraffic control;  // by then, of all nodes
};

struct RedrawnOutcome {
  std::string failure;  // empty: everything held
  Instant ended;
  std::vector<Instant> round_ends;
  std::vector<SwitchWatch::Switch> switches;
  SessionNode::ControlTraffic control;
  RedrawnMark began;     // the first round is complete
  RedrawnMark asked;     // for another plan
  RedrawnMark agreed;    // all nodes have it
  RedrawnMark rested;    // until all ranks leave
  RedrawnMark finished;  // all rounds are complete
  std::uint64_t packets = 0;
  hop::Counters counters;
  RedrawnTotals totals;
};

/// Checks what sim::run() does (I1 to I6, those of losses for rounds of buckets), and that nodes
/// never differ in what an epoch is and in which round it begins (I7), that rounds go on within a
/// bound whatever becomes of the coordinator, that all nodes come to the same plan, and that
/// nothing is left of the job when its ranks have left.
RedrawnOutcome run(const RedrawnScenario& scenario);

/// Nodes of a cluster, with names and addresses.
std::vector<config::NodeConfig> node_configs(std::size_t count);

/// Everything is drawn from the seed, with a coordinator that meets a misfortune in most of them,
/// and bounds in half of them.
RedrawnScenario random_redrawn_scenario(std::uint64_t seed);

/// Runs seeds of whole daemons. Prints what failed and what they have shown. 0: all was right.
int run_redrawn_seeds(const Seeds& seeds, const char* program);

}  // namespace gradplane::sim
