// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/sim/agenda.h"
#include "tests/sim/cluster.h"
#include "tests/sim/crash.h"
#include "tests/sim/flip_coordinator.h"
#include "tests/sim/host.h"
#include "tests/sim/network.h"
#include "tests/sim/progress.h"
#include "tests/sim/tolerance_checker.h"

namespace gradplane::sim {

/// What outlives a job: the hosts, the network between them, and the clock.
struct Machines {
  explicit Machines(const Scenario& scenario);

  Network network;
  std::vector<std::unique_ptr<Host>> hosts;  // by node
  Instant now = Instant::from_ns(1'000'000);
};

/// One job, from its first round to its last, or until a node crashes.
class Life {
 public:
  Life(Machines& machines, const Scenario& scenario);
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  Outcome run();
  /// Whether a crash has ended the job.
  bool is_lost() const { return watch_.has_crashed(); }
  /// For a lost job: no rank has submitted this round or a later one.
  std::uint32_t end_of_submitted() const;

 private:
  bool is_over() const;
  void step();
  Instant next_time() const;
  void note_round_ends();
  void install_due();
  void install(Host& host, std::uint32_t bucket);
  void install(Host& host, std::size_t core, std::uint32_t bucket);
  void flip_due();
  FlipCoordinator::Actions actions();
  job::PlanConfig plan_for(const api::Plan& plan, api::NodeId node, CorePart core);
  void on_activation(std::uint32_t first, const api::Plan& before, const api::Plan& plan);
  void join(const api::Plan& plan, api::NodeId node);
  void begin(api::NodeId node, std::uint32_t first);
  void dismiss(api::NodeId node);
  void end_job(Host& host);
  bool has_ended_plans() const;
  void change_due();
  void change(const BoundChange& change);
  void crash_due();
  void crash();
  void lose_job(Host& host);
  void open_gate();
  bool at_rest() const;

  void turn(Host& host);
  void poll(Host& host);
  void hear_reports(Host& host, std::size_t core);
  void hear_events(Host& host);
  void hear(Host& host, const api::Event& event);
  void give_up(const Host& by, const api::Event& event);

  void note_progress(const Host& host);
  void check_lead();
  void check_invariants(const Host& host);
  void fail(std::string what);
  std::string progress_text() const;
  void conclude();
  void compare_replicas();

  Machines& machines_;
  const Scenario& scenario_;
  const Instant start_;
  std::size_t world_;
  ToleranceChecker checker_;
  std::vector<Installation> installations_;
  FlipCoordinator coordinator_;
  CrashWatch watch_;
  Agenda agenda_;
  Progress progress_;
  /// By rank, as progress_ counts: a rank that takes no part has completed all rounds.
  std::vector<std::uint32_t> completed_;
  std::size_t gate_;  // the rounds before this one are those that ranks may submit
  std::size_t installed_ = 0;
  std::size_t changed_ = 0;  // how many of the scenario's changes of bounds are in force
  std::uint64_t turns_ = 0;
  Outcome outcome_;
};

}  // namespace gradplane::sim
