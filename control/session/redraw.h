// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <optional>

#include "dataplane/base/time.h"

/// Decides when the plan of a running job is made anew because the network has changed. Pure.
namespace gradplane::session {

struct RedrawSettings {
  bool enabled = true;
  Duration every = Duration::seconds(5);  // the shortest time between two switches
  double gain = 0.1;                      // the least share of the time that a switch must save
};

/// A switch must save the time that it costs within this time. Nobody knows how long a link keeps
/// its rate. Where links change sooner, some switches do not pay.
inline constexpr Duration kRedrawHorizon = Duration::seconds(30);
/// The highest price of a switch that is taken into account. Under a plan that has become very slow
/// rounds may take longer than the horizon, and just such a plan has to be left.
inline constexpr Duration kMostSwitchPrice = Duration::seconds(15);
static_assert(kMostSwitchPrice < kRedrawHorizon);
/// After each redraw that failed because a node refused or did not answer, the next one waits twice
/// as long, up to this.
inline constexpr Duration kLongestRedrawPause = Duration::seconds(120);
/// When the plan in force stays, the planner may be asked again after this time. It is short,
/// because no switch was made and the planner may not have known all changed links.
inline constexpr Duration kKeptPause = Duration::seconds(1);
/// A planner that says "too early" is asked again after kKeptPause, and while nothing changes after
/// twice as long each time, up to this. A new measurement with the same result is no change.
inline constexpr Duration kLongestEarlyPause = Duration::seconds(16);
/// A planner that has kept the plan rests for at least this many times as long as it took. So
/// planning takes a bounded share of a CPU.
inline constexpr std::int64_t kRestForPlanning = 10;
static_assert(kRedrawHorizon < kLongestRedrawPause);

/// Whether a switch from a plan that takes `now` to one that takes `then` is worth it: it must save
/// `settings.gain` of the time, and more than `price` (at most kMostSwitchPrice) within
/// kRedrawHorizon. Without `now` the plan in force cannot go on, and any other plan is worth it.
bool is_worth_switch(std::optional<Duration> now, Duration then, Duration price,
                     const RedrawSettings& settings);

/// The pace of the redraws of one job.
class Redraw {
 public:
  /// A plan has come into force. `depends_on_network` says whether a change of the network can lead
  /// to another plan.
  void on_planned(bool depends_on_network) { depends_on_network_ = depends_on_network; }
  /// A planner is asked about the network of this version.
  void on_ask(Instant now, std::uint64_t version);
  /// The planner has answered, and the plan in force stays.
  void on_kept(Instant now, const RedrawSettings& settings);
  /// The same, but the planner must be asked again even if nothing changes.
  void on_early(Instant now, const RedrawSettings& settings);
  /// Nodes are asked to prepare another plan, for any reason.
  void on_switch(Instant now, const RedrawSettings& settings);
  void on_commit() { failures_ = 0; }
  /// The next plan was given up, or the planner has failed.
  void on_failure(const RedrawSettings& settings);

  /// When the planner may be asked about the network of this version; never() if it has been.
  Instant due(std::uint64_t version, const RedrawSettings& settings) const;

 private:
  bool depends_on_network_ = true;  // assumed until on_planned()
  std::optional<std::uint64_t> asked_version_;
  Instant asked_at_;
  std::optional<Instant> again_at_;  // when to ask again although nothing has changed
  std::uint32_t earlies_ = 0;        // calls of on_early() since the last change
  Instant begun_at_;                 // the last switch, or the last failure
  Instant next_at_;
  std::uint32_t failures_ = 0;
};

}  // namespace gradplane::session
