// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "control/config/config.h"
#include "control/daemon/jobs.h"
#include "control/daemon/link_table.h"
#include "control/session/session_manager.h"
#include "dataplane/engine/engine.h"
#include "tests/sim/network.h"
#include "tests/sim/switch_watch.h"
#include "tests/sim/trainer.h"

namespace gradplane::sim {

/// One daemon: engines on a simulated port, and above them the session, the table of jobs and the
/// planner of the production daemon. Its trainers outlive it, as processes do.
class SessionNode {
 public:
  struct Pace {
    Duration planning_takes;  // each plan
    Duration links_every;     // the engine is asked what it has measured
  };
  /// `config` is that of this node.
  SessionNode(Network& network, config::Config config, const Pace& pace, SwitchWatch& watch,
              ToleranceChecker& checker, const Instant& clock);
  ~SessionNode() { crash(); }
  SessionNode(const SessionNode&) = delete;
  SessionNode& operator=(const SessionNode&) = delete;

  api::NodeId id() const { return config_.self; }

  /// There is a daemon, which knows nothing.
  void start(std::uint64_t incarnation);
  /// The daemon is gone, with all that it knew.
  void crash();
  bool lives() const { return session_ != nullptr; }
  /// A paused daemon does nothing and hears nothing.
  void set_paused(bool is_paused);
  bool runs() const { return lives() && !is_paused_; }

  /// A rank of this node attaches to its daemon. Rank 0 describes the buckets.
  void attach(const Scenario& scenario, std::uint16_t rank, std::uint32_t world, Instant now);
  void detach_all(Instant now);
  /// An operator asks for another plan.
  void replan(const session::PlanChoice& choice, Instant now);

  /// From now on nothing may be missing, whatever the tables say.
  void make_exact();
  /// Its ranks may submit one more round of those that close the run.
  void open_gate();

  /// Does everything that is due. Returns early when the watch has struck.
  void turn(Instant now);
  Instant wake_time(Instant now) const;

  const std::vector<std::unique_ptr<Trainer>>& trainers() const { return trainers_; }
  const session::SessionManager& session() const { return *session_; }
  const daemon::JobTable& jobs() const { return *jobs_; }
  /// The newest plan that was committed here; 0: there is no job.
  std::uint32_t epoch() const;
  /// How many buckets the job here has bounds for.
  std::size_t tables() const;
  /// Its jobs have nothing on their way and wait for nothing.
  bool at_rest() const;
  /// What does not hold; empty: all does.
  const std::string& failure() const { return failure_; }
  /// What the session has sent, in all lives.
  struct ControlTraffic {
    std::uint64_t datagrams = 0;
    std::uint64_t bytes = 0;  // without the headers of the datagrams
  };
  const ControlTraffic& control() const { return control_; }
  /// Of the jobs that have ended here.
  const hop::Counters& counters() const { return counters_; }

 private:
  struct Queues {
    api::CommandQueue commands{api::kQueueEntries};
    api::EventQueue events{api::kQueueEntries};
    api::ReportQueue reports{api::kReportQueueEntries};
  };
  struct Order {
    Instant done_at;
    session::MakePlan order;
  };
  class Actor;  // does what the session wants

  bool step_trainers(Instant now);
  void hear_reports(Instant now);
  bool hear_events(Instant now);
  bool has_all_snapshots() const;
  void end_job(engine::JobRuntime* runtime);
  void hear(const api::Event& event, Instant now);
  void hear_of_plan(const api::Event& event, Instant now);
  bool tick(Instant now);
  bool finish_orders(Instant now);
  void ask_links(Instant now);
  bool run_actions(Instant now);
  void fail(const std::string& what);

  config::Config config_;
  Pace pace_;
  SwitchWatch& watch_;
  ToleranceChecker& checker_;
  Network& network_;
  SimPort port_;
  session::Planner planner_;
  std::vector<std::unique_ptr<Trainer>> trainers_;
  std::size_t ready_ = 0;  // ranks
  std::string failure_;
  ControlTraffic control_;
  hop::Counters counters_;
  bool is_exact_ = false;
  bool is_paused_ = false;
  std::uint64_t turns_ = 0;  // without a check of invariants
  // A life.
  std::unique_ptr<engine::SharedLink> shared_link_;
  std::vector<std::unique_ptr<Queues>> queues_;  // by core
  std::unique_ptr<daemon::JobTable> jobs_;
  daemon::RankTable ranks_;
  std::vector<std::unique_ptr<engine::Engine>> engines_;  // by core
  std::unique_ptr<session::SessionManager> session_;
  std::vector<std::unique_ptr<api::EngineSnapshot>> snapshots_;  // by core; null: the engine's
  daemon::LinkTable links_;
  std::vector<Order> orders_;
  Instant links_at_;
};

}  // namespace gradplane::sim
