// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/base/time.h"
#include "tests/sim/dice.h"

namespace gradplane::sim {

struct Scenario;
class Host;

/// A daemon that is killed while its job runs. The ranks on its host live on, as processes.
struct Crash {
  std::uint16_t host = 0;
  Duration after;  // from the beginning of the job
  /// Every other node loses the job this long after the crash, each at a moment of its own: that is
  /// when liveness or the coordinator tells it. Less where a node reports a stall before.
  Duration noticed_from;
  Duration noticed_until;
  /// The daemon is started again, empty, and a new job of all nodes does what is left. Else the
  /// ranks end without one.
  bool restarts = true;
  Duration restarts_after;  // the crash
  /// The new job has the id of the old one: its user has given it the same key.
  bool same_job_id = false;
};

/// When the nodes of a job lose it to a crash: what the session does in a daemon.
class CrashWatch {
 public:
  /// Of the scenario's first crash, if it has one. The job begins at `start`.
  CrashWatch(const Scenario& scenario, Instant start);

  Instant next_event() const;
  bool is_due(Instant now) const { return !has_crashed_ && now >= crash_at_; }
  void on_crash(Instant now);
  bool has_crashed() const { return has_crashed_; }
  /// A node has found out that nothing moves: all nodes hear of it soon.
  void on_stall(Instant now);
  /// The hosts that lose the job now.
  std::vector<std::size_t> take_noticed(Instant now);
  bool all_noticed() const { return has_crashed_ && noticed_ == notices_.size(); }

 private:
  const Scenario& scenario_;
  Dice dice_;
  Instant crash_at_ = Instant::never();
  bool has_crashed_ = false;
  std::vector<Instant> notices_;  // by host; Instant::never(): it has heard
  std::size_t noticed_ = 0;
};

/// What ranks need to go on together when they have lost their job (docs/decisions/0002, 0007):
/// whoever has completed a round has the same bits as all others, and still holds what another
/// lacks. Empty, or what does not hold.
std::string check_recovery(const Scenario& scenario,
                           const std::vector<std::unique_ptr<Host>>& hosts);

/// The job that does what is left after the first crash of the scenario, from round `first` on.
Scenario after_crash(const Scenario& scenario, std::uint32_t first);

/// Lets daemons crash in a scenario that was drawn without.
void add_crashes(Scenario& scenario);

}  // namespace gradplane::sim
