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

/// One daemon: engines on a simulated port, and the production daemon's session, job table and
/// planner above them. Its trainers outlive it, as processes do.
class SessionNode {
 public:
  struct Pace {
    Duration planning_takes;  // time for each plan
    Duration links_every;     // interval at which the engine is asked for its measurements
  };
  /// `config` is this node's.
  SessionNode(Network& network, config::Config config, const Pace& pace, SwitchWatch& watch,
              ToleranceChecker& checker, const Instant& clock);
  ~SessionNode() { crash(); }
  SessionNode(const SessionNode&) = delete;
  SessionNode& operator=(const SessionNode&) = delete;

  api::NodeId id() const { return config_.self; }

  /// Starts a daemon without state.
  void start(std::uint64_t incarnation);
  /// Ends the daemon; all its state is lost.
  void crash();
  bool lives() const { return session_ != nullptr; }
  /// A paused daemon does nothing and receives nothing.
  void set_paused(bool is_paused);
  bool runs() const { return lives() && !is_paused_; }

  /// Attaches a rank of this node to the daemon. Rank 0 describes the buckets.
  void attach(const Scenario& scenario, std::uint16_t rank, std::uint32_t world, Instant now);
  void detach_all(Instant now);
  /// An operator asks this daemon for another plan.
  void replan(const session::PlanChoice& choice, Instant now);

  /// From now on every bound counts as 0, whatever the tables say.
  void make_exact();
  /// Lets the node's ranks submit one more closing round.
  void open_gate();

  /// Does all work that is due. Returns early when the watch has struck.
  void turn(Instant now);
  Instant wake_time(Instant now) const;

  const std::vector<std::unique_ptr<Trainer>>& trainers() const { return trainers_; }
  const session::SessionManager& session() const { return *session_; }
  const daemon::JobTable& jobs() const { return *jobs_; }
  /// The epoch of the newest plan that was committed here; 0: there is no job.
  std::uint32_t epoch() const;
  /// The number of buckets for which the job has bounds here.
  std::size_t tables() const;
  /// Whether the jobs here have nothing in flight and wait for nothing.
  bool at_rest() const;
  /// What is wrong; empty: nothing.
  const std::string& failure() const { return failure_; }
  /// Traffic that the session has sent, over all lives of the daemon.
  struct ControlTraffic {
    std::uint64_t datagrams = 0;
    std::uint64_t bytes = 0;  // without the datagrams' headers
  };
  const ControlTraffic& control() const { return control_; }
  /// Counters of the jobs that have ended here.
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
  class Actor;  // carries out what the session asks for

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
  std::size_t ready_ = 0;  // the number of ranks that are ready
  std::string failure_;
  ControlTraffic control_;
  hop::Counters counters_;
  bool is_exact_ = false;
  bool is_paused_ = false;
  std::uint64_t turns_ = 0;  // since the last check of invariants
  // The state of a running daemon.
  std::unique_ptr<engine::SharedLink> shared_link_;
  std::vector<std::unique_ptr<Queues>> queues_;  // by core
  std::unique_ptr<daemon::JobTable> jobs_;
  daemon::RankTable ranks_;
  std::vector<std::unique_ptr<engine::Engine>> engines_;  // by core
  std::unique_ptr<session::SessionManager> session_;
  // By core; null while the engine has it.
  std::vector<std::unique_ptr<api::EngineSnapshot>> snapshots_;
  daemon::LinkTable links_;
  std::vector<Order> orders_;
  Instant links_at_;
};

}  // namespace gradplane::sim
