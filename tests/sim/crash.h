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

/// A daemon that is killed while its job runs. The ranks on its host live on.
struct Crash {
  std::uint16_t host = 0;
  Duration after;  // from the beginning of the job
  /// Every other node loses the job at a random time in this interval after the crash, as when
  /// liveness or the coordinator tells it. A node's report of a stall makes that earlier.
  Duration noticed_from;
  Duration noticed_until;
  /// The daemon starts again without state, and a new job of all nodes does the remaining rounds.
  /// If false, the ranks end without the job.
  bool restarts = true;
  Duration restarts_after;  // the delay from the crash
  /// The new job has the old job's id, because its user has given it the same key.
  bool same_job_id = false;
};

/// Decides when the nodes of a job lose it to a crash. In a daemon the session does that.
class CrashWatch {
 public:
  /// Follows the scenario's first crash, if it has one. The job begins at `start`.
  CrashWatch(const Scenario& scenario, Instant start);

  Instant next_event() const;
  bool is_due(Instant now) const { return !has_crashed_ && now >= crash_at_; }
  void on_crash(Instant now);
  bool has_crashed() const { return has_crashed_; }
  /// A node has reported a stall, so all nodes hear of it soon.
  void on_stall(Instant now);
  /// The hosts that lose the job now.
  std::vector<std::size_t> take_noticed(Instant now);
  bool all_noticed() const { return has_crashed_ && noticed_ == notices_.size(); }

 private:
  const Scenario& scenario_;
  Dice dice_;
  Instant crash_at_ = Instant::never();
  bool has_crashed_ = false;
  std::vector<Instant> notices_;  // by host; Instant::never(): the host has heard of the crash
  std::size_t noticed_ = 0;
};

/// Checks what ranks need to continue together when they have lost their job (docs/decisions/0002,
/// 0007): all ranks that have completed a round have the same bits, and still have the results that
/// other ranks lack. Returns what is wrong, or an empty string.
std::string check_recovery(const Scenario& scenario,
                           const std::vector<std::unique_ptr<Host>>& hosts);

/// The scenario of the job that does the remaining rounds after the first crash, from round `first`
/// on.
Scenario after_crash(const Scenario& scenario, std::uint32_t first);

/// Adds crashes to a scenario that has none.
void add_crashes(Scenario& scenario);

}  // namespace gradplane::sim
