// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <memory>
#include <vector>

#include "dataplane/api/commands.h"
#include "dataplane/engine/engine.h"
#include "tests/sim/cluster.h"
#include "tests/sim/network.h"
#include "tests/sim/tolerance_checker.h"
#include "tests/sim/trainer.h"

namespace gradplane::sim {

/// One host: an engine on a simulated port, and the host's part in one job. The engine outlives
/// jobs. The trainers outlive the engine, as processes outlive a daemon.
class Host {
 public:
  Host(Network& network, const Scenario& scenario, api::NodeId node, const Instant& clock);
  ~Host() { crash(); }

  api::NodeId node() const { return node_; }
  std::vector<std::unique_ptr<Trainer>> trainers;
  std::vector<std::unique_ptr<aggregate::Bucket>> buckets;

  /// Hands a job to the engine, and a trainer to each of its ranks here. `joins`: other hosts run
  /// it already; ranks begin with Trainer::begin_at().
  void begin_job(const Scenario& scenario, const api::Plan& plan, bool joins, std::size_t world,
                 ToleranceChecker& checker);
  /// Joins the groups of the parents of a plan, and leaves those of the plan before the last one.
  void join_groups(const api::Plan& plan);
  /// Asks the engine for the job. It answers with kJobRemoved; then end_job() destroys it.
  void leave_job();
  void end_job();
  bool has_job() const { return runtime_ != nullptr; }
  engine::JobRuntime& runtime() { return *runtime_; }
  const engine::JobRuntime& runtime() const { return *runtime_; }

  /// The engine is gone, with all that it and its job knew.
  void crash();
  /// There is an engine again, which knows nothing.
  void restart();
  bool is_up() const { return engine_ != nullptr; }
  /// What the engine, which is up, has measured.
  const awareness::IncomingLinks& links() const { return engine_->links(); }
  engine::Engine& engine() { return *engine_; }

  void command(const api::Command& command) { (void)queues_->commands.push(command); }
  api::CommandQueue& commands() { return queues_->commands; }
  api::EventQueue& events() { return queues_->events; }
  api::ReportQueue& reports() { return queues_->reports; }

  /// When the host has something to do of its own accord.
  Instant wake_time(Instant now) const;
  /// The job here has nothing on its way and waits for nothing.
  bool at_rest() const;

 private:
  struct Queues {
    api::CommandQueue commands{kEntries};
    api::EventQueue events{kEntries};
    api::ReportQueue reports{kEntries};
  };
  /// Control takes them at every turn.
  static constexpr std::size_t kEntries = 128;

  api::NodeId node_;
  engine::EngineOptions options_;
  SimPort port_;
  std::uint32_t job_id_ = 0;
  std::vector<std::vector<port::Group>> groups_;  // by plan, the newest last
  std::unique_ptr<Queues> queues_;
  std::unique_ptr<engine::JobRuntime> runtime_;
  std::unique_ptr<engine::Engine> engine_;
};

/// What job a host runs as a part of a scenario, from this plan on.
job::JobConfig job_config(const Scenario& scenario, const api::Plan& plan, api::NodeId node,
                          bool joins = false);
/// The session derives a key from each epoch.
wire::Key key_of(std::uint32_t epoch);
/// What every node's link can carry, as plans are told.
std::vector<std::uint64_t> link_rates(const Scenario& scenario);

}  // namespace gradplane::sim
