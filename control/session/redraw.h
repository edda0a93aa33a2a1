// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <optional>

#include "dataplane/base/time.h"

/// When the plan of a job that runs is made anew because the network has changed. Pure.
namespace gradplane::session {

struct RedrawSettings {
  bool enabled = true;
  Duration every = Duration::seconds(5);  // at least, from one switch to the next
  double gain = 0.1;                      // at least so much less time
};

/// What a switch costs has to come back within this time. Nobody knows how long a link keeps its
/// rate; where links change sooner, some switches do not pay.
inline constexpr Duration kRedrawHorizon = Duration::seconds(30);
/// A switch counts as no more expensive than this. A plan in force that has become very slow makes
/// rounds that last longer than the horizon, and it is the one that has to be left.
inline constexpr Duration kMostSwitchPrice = Duration::seconds(15);
static_assert(kMostSwitchPrice < kRedrawHorizon);
/// After each redraw that came to nothing because a node refused or did not answer, the next one
/// waits twice as long, up to this.
inline constexpr Duration kLongestRedrawPause = Duration::seconds(120);
/// When the plan in force stays, the planner is asked again after so long: nothing was switched,
/// and it may not have known all links that have changed.
inline constexpr Duration kKeptPause = Duration::seconds(1);
/// A planner for which it was too early is asked again after kKeptPause, and while nothing changes,
/// after twice as long each time, up to this: that a pair was measured again with the same result
/// is no change.
inline constexpr Duration kLongestEarlyPause = Duration::seconds(16);
/// A planner that took a second is asked again after so many seconds at the earliest, so that
/// planning takes a bounded part of a processor.
inline constexpr std::int64_t kRestForPlanning = 10;
static_assert(kRedrawHorizon < kLongestRedrawPause);

/// Whether a plan that takes `then` is worth a switch from one that takes `now`: it saves
/// `settings.gain` of the time, and more than `price` (or kMostSwitchPrice) within kRedrawHorizon.
/// Without `now` the plan
/// in force does not reach everybody, and any other one is worth it.
bool is_worth_switch(std::optional<Duration> now, Duration then, Duration price,
                     const RedrawSettings& settings);

/// The pace of the redraws of one job.
class Redraw {
 public:
  /// A plan is in force. Whether its planner makes another one for another network.
  void on_planned(bool depends_on_network) { depends_on_network_ = depends_on_network; }
  /// A planner is asked about the network of this version.
  void on_ask(Instant now, std::uint64_t version);
  /// It has answered, and the plan in force stays.
  void on_kept(Instant now, const RedrawSettings& settings);
  /// The same, but it wants to be asked again even if nothing changes any more.
  void on_early(Instant now, const RedrawSettings& settings);
  /// Nodes are asked to prepare another plan, for whatever reason.
  void on_switch(Instant now, const RedrawSettings& settings);
  void on_commit() { failures_ = 0; }
  /// That plan does not come, or the planner has failed.
  void on_failure(const RedrawSettings& settings);

  /// When the planner may be asked about the network of this version; never() when it has been.
  Instant due(std::uint64_t version, const RedrawSettings& settings) const;

 private:
  bool depends_on_network_ = true;  // as long as nobody knows
  std::optional<std::uint64_t> asked_version_;
  Instant asked_at_;
  std::optional<Instant> again_at_;  // although nothing has changed
  std::uint32_t earlies_ = 0;        // answers that it was too early, since something has changed
  Instant begun_at_;                 // the last switch, or the last failure
  Instant next_at_;
  std::uint32_t failures_ = 0;
};

}  // namespace gradplane::session
