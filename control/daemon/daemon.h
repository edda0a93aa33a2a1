// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/config/config.h"
#include "control/daemon/core.h"
#include "control/daemon/drop_watch.h"
#include "control/daemon/groups.h"
#include "control/daemon/jobs.h"
#include "control/daemon/lent_memory.h"
#include "control/daemon/link_table.h"
#include "control/daemon/log.h"
#include "control/daemon/plan_thread.h"
#include "control/daemon/ranks.h"
#include "control/server/event_loop.h"
#include "control/server/server.h"
#include "control/session/session_manager.h"
#include "dataplane/api/commands.h"
#include "dataplane/engine/shared_link.h"
#include "dataplane/ipc/doorbell.h"
#include "dataplane/port/port.h"

namespace gradplane::daemon {

/// Owns all parts of the daemon. It passes messages between the control socket, the session and the
/// poll loops, and orders from the session to the thread that makes plans. All its functions run on
/// the main thread, so whenever one of them waits, the event loop waits too.
class Daemon : public server::ConnectionHandler {
 public:
  /// Takes the socket, opens the port, starts the poll loops. An Error names the cause and the
  /// remedy.
  static Result<std::unique_ptr<Daemon>> start(config::Config config);
  ~Daemon() override;
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// Serves until SIGTERM or SIGINT.
  void run();

  void on_open(server::ConnectionId connection, const server::PeerInfo& peer) override;
  void on_message(server::ConnectionId connection, const protocol::ClientMessage& message) override;
  void on_closed(server::ConnectionId connection, bool clean) override;

 private:
  explicit Daemon(config::Config config);
  Status open_control();
  Status open_dataplane();
  Status open_doorbells();
  Status open_port();
  engine::EngineOptions engine_options(std::size_t core) const;
  void make_engine(std::size_t core);
  Status start_loop(std::size_t core);
  void announce() const;

  void on(server::ConnectionId connection, const protocol::Attach& attach);
  void on(server::ConnectionId connection, const protocol::RegisterBucket& bucket);
  void on(server::ConnectionId connection, const protocol::Drift& drift);
  void on(server::ConnectionId connection, const protocol::StatusRequest& request);
  void on(server::ConnectionId connection, const protocol::BoundsRequest& request);
  void on(server::ConnectionId connection, const protocol::RoundsRequest& request);
  void on(server::ConnectionId connection, const protocol::TopologyRequest& request);
  void on(server::ConnectionId connection, const protocol::ReplanRequest& request);

  /// Executes the actions of the session until there are none, and sets the timer for its next
  /// deadline.
  void run_actions();
  void act(const session::SendDatagram& action);
  void act(const session::InstallJob& action);
  void act(const session::RemoveJob& action);
  void act(const session::PreparePlan& action);
  void act(const session::CommitPlan& action);
  void act(const session::AbortPlan& action);
  void act(const session::EndOlderPlan& action);
  void act(const session::AnswerReplan& action);
  void act(const session::MakePlan& action);
  void act(const session::InstallBounds& action);
  void act(const session::NotifyRank& action);
  void act(const session::LogLine& action);

  void take_engine_events();
  void take_event(const api::Event& event, Instant now);
  void on_control(const api::ControlBytes& control, Instant now);
  void take_round_reports();
  void take_round_reports(api::ReportQueue& reports);
  void watch_rounds();
  void on_mismatch(const api::Event& event);
  void on_stalled(const api::Event& event);
  void on_rank_broken(const api::Event& event);
  void on_plan_event(const api::Event& event);
  std::string why_not_replan(server::ConnectionId connection, std::uint32_t job_id) const;
  void ask_snapshot();
  bool has_all_snapshots() const;
  void on_snapshots(Instant now);
  void answer_topology(Instant now);
  void take_plans();
  void watch_links();
  void watch_drops();
  void beat();
  void watch_bounds();
  void watch_memory();

  const config::Config config_;
  const Instant started_;
  Log log_;
  std::unique_ptr<server::EventLoop> loop_;
  std::unique_ptr<server::Signals> signals_;
  std::unique_ptr<server::Server> server_;
  std::unique_ptr<session::SessionManager> session_;
  ipc::Doorbell engine_events_;              // the poll loops ring us
  ipc::Doorbell plans_made_;                 // the plan thread rings us
  std::shared_ptr<LentMemory> lent_memory_;  // destroyed after the port, which may read the memory
  std::unique_ptr<port::Port> port_;
  std::unique_ptr<engine::SharedLink> shared_link_;  // null if there is one core
  Cores cores_;
  RankTable ranks_;
  LeftMemory left_memory_;
  std::map<server::ConnectionId, server::PeerInfo> peers_;
  JobTable jobs_;
  std::unique_ptr<GroupMembership> groups_;
  std::unique_ptr<PlanThread> plans_;
  server::TimerId session_timer_ = 0;
  server::TimerId hand_over_timer_ = 0;
  /// Control messages of a node's address, for the warning of another cluster.key.
  struct KeyDoubt {
    std::uint32_t bad_tags = 0;  // since the last message with a right tag
    Instant next_warning;
  };
  std::map<api::NodeId, KeyDoubt> key_doubts_;
  std::uint64_t datagrams_lost_ = 0;  // not sent, because the command queue was full
  bool snapshot_wanted_ = false;
  bool links_wanted_ = false;
  bool drops_wanted_ = false;
  DropWatch drop_watch_;
  LinkTable links_;
  std::vector<server::ConnectionId> status_askers_;
  struct TopologyAsker {
    server::ConnectionId connection;
    bool why = false;
  };
  std::vector<TopologyAsker> topology_askers_;
  std::vector<server::ConnectionId> why_askers_;  // wait for an answer of the plan thread
  bool why_under_way_ = false;                    // whether the plan thread works on it
};

}  // namespace gradplane::daemon
