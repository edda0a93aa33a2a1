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

/// Whole daemons in virtual time, without their threads and sockets: engines over a network of
/// sites, and above them the session, its coordinator and the planners. Links change, engines
/// measure that, and the coordinator redraws plans. Coordinators die on the way.
namespace gradplane::sim {

/// What happens to a coordinator.
enum class Misfortune : std::uint8_t { kDies, kRestarts, kPauses, kIsCutOff, kCount };
inline constexpr std::size_t kMisfortunes = static_cast<std::size_t>(Misfortune::kCount);
std::string_view misfortune_name(Misfortune misfortune);

struct RedrawnStrike {
  Strike when;
  Misfortune what = Misfortune::kDies;
  Duration lasts;  // how long until it is back; unused for kDies
};

/// A whole run. Everything is decided before it starts.
struct RedrawnScenario {
  /// Rounds, trainers and links. Its plan has the members with ranks but no trees, because the
  /// session has the trees made.
  Scenario base;
  /// The configuration of all nodes, except for `self`. Nodes without ranks that do not aggregate
  /// have no part in the job.
  config::Config config;
  std::vector<RedrawnStrike> strikes;  // one after the other, at most one for each redraw
  /// A node that may sum and whose daemon starts later, so that first plans are made without it.
  std::optional<api::NodeId> late;
  Duration late_by;
  SessionNode::Pace pace;
  /// When all ranks have completed so many rounds, an operator asks for the plan `ask`, and the run
  /// waits until all nodes have it. 0: no operator asks.
  std::uint32_t ask_at_round = 0;
  session::PlanChoice ask;
  Duration rests;  // pause between the last round and the end of the job
  /// The run fails if more time passes between two rounds.
  Duration longest_pause;
};

struct RedrawnTotals {
  std::uint64_t runs = 0;
  std::uint64_t redraws = 0;
  std::uint64_t unstruck = 0;  // misfortunes whose phase never came
  std::array<std::array<std::uint64_t, kMisfortunes>, kSwitchPhases> struck{};
  std::uint64_t takeovers = 0;  // runs that ended under another coordinator
  // Plans that another coordinator than the first has prepared.
  std::uint64_t redraws_after_takeover = 0;
  std::uint64_t relayed = 0;  // blocks over auxiliary routes
  std::uint64_t late = 0;     // runs in which the late node was in the plan at the end
  ToleranceTotals tolerance;
  /// The longest time in which no round was completed at all ranks: before any misfortune, and
  /// after a misfortune in each phase.
  Duration longest_before;
  std::array<Duration, kSwitchPhases> longest_after{};
  void add(const RedrawnTotals& other);
};

/// A point in time of a run.
struct RedrawnMark {
  Instant at;
  SessionNode::ControlTraffic control;  // of all nodes, until then
};

struct RedrawnOutcome {
  std::string failure;  // empty: all checks passed
  Instant ended;
  std::vector<Instant> round_ends;
  std::vector<SwitchWatch::Switch> switches;
  SessionNode::ControlTraffic control;
  RedrawnMark began;     // the first round was complete
  RedrawnMark asked;     // an operator asked for another plan
  RedrawnMark agreed;    // all nodes had that plan
  RedrawnMark rested;    // the pause was over, and ranks were about to leave
  RedrawnMark finished;  // all rounds were complete
  std::uint64_t packets = 0;
  hop::Counters counters;
  RedrawnTotals totals;
};

/// Checks what sim::run() checks (I1 to I6, those of losses for rounds of buckets). It also checks
/// that nodes agree on what an epoch is and in which round it begins (I7), that rounds continue
/// within a time limit whatever happens to the coordinator, that all nodes get the same plan, and
/// that nothing is left of the job when its ranks have left.
RedrawnOutcome run(const RedrawnScenario& scenario);

/// The configuration of `count` nodes, with names and addresses.
std::vector<config::NodeConfig> node_configs(std::size_t count);

/// Draws a scenario from the seed. Coordinators meet a misfortune in most scenarios, and half of
/// them have loss bounds.
RedrawnScenario random_redrawn_scenario(std::uint64_t seed);

/// Runs whole daemons with each seed. Prints failures and totals. Returns 0 if there was no
/// failure.
int run_redrawn_seeds(const Seeds& seeds, const char* program);

}  // namespace gradplane::sim
