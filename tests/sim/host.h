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

/// One host: engines on the queues of a simulated port, and each engine's part of one job. Engines
/// outlive jobs. Trainers outlive the engines, as processes outlive a daemon.
class Host {
 public:
  Host(Network& network, const Scenario& scenario, api::NodeId node, const Instant& clock);
  ~Host() { crash(); }

  api::NodeId node() const { return node_; }
  std::vector<std::unique_ptr<Trainer>> trainers;
  std::vector<std::unique_ptr<aggregate::Bucket>> buckets;  // of all the job's parts

  /// Gives a job to the engines, and makes a trainer for each local rank. `joins`: other hosts
  /// already run the job, and ranks begin with Trainer::begin_at().
  void begin_job(const Scenario& scenario, const api::Plan& plan, bool joins, std::size_t world,
                 ToleranceChecker& checker);
  /// Joins the groups of a plan's parents, and leaves those of the plan before the last one.
  void join_groups(const api::Plan& plan);
  /// Tells the engines to remove the job. Each answers with kJobRemoved; after the last answer the
  /// caller calls end_job(), which destroys the job.
  void leave_job();
  bool is_last_removed() { return ++removed_ == cores(); }
  void end_job();
  bool has_job() const { return !runtimes_.empty(); }
  engine::JobRuntime& runtime(std::size_t core = 0) { return *runtimes_[core]; }
  const engine::JobRuntime& runtime(std::size_t core = 0) const { return *runtimes_[core]; }

  /// Destroys the engines and the job, with all state.
  void crash();
  /// Creates engines without state.
  void restart();
  bool is_up() const { return !engines_.empty(); }
  std::size_t cores() const { return cores_; }
  /// The measurements of the first engine. The host must be up.
  const awareness::IncomingLinks& links() const { return engines_[0]->links(); }
  engine::Engine& engine(std::size_t core) { return *engines_[core]; }

  void command(std::size_t core, const api::Command& command) {
    (void)queues_[core]->commands.push(command);
  }
  api::CommandQueue& commands(std::size_t core) { return queues_[core]->commands; }
  api::EventQueue& events(std::size_t core) { return queues_[core]->events; }
  api::ReportQueue& reports(std::size_t core) { return queues_[core]->reports; }

  /// When the host has work to do that no arrival causes.
  Instant wake_time(Instant now) const;
  /// The job has nothing in flight on this host and waits for nothing.
  bool at_rest() const;

 private:
  struct Queues {
    api::CommandQueue commands{kEntries};
    api::EventQueue events{kEntries};
    api::ReportQueue reports{kEntries};
  };
  /// The capacity of the rings between control and engines. Control empties them at every turn.
  static constexpr std::size_t kEntries = 128;

  api::NodeId node_;
  engine::EngineOptions options_;
  SimPort port_;
  std::uint32_t job_id_ = 0;
  std::vector<std::vector<port::Group>> groups_;  // by plan, the newest last
  std::size_t cores_;
  std::size_t removed_ = 0;  // the number of the job's parts that were removed
  std::unique_ptr<engine::SharedLink> shared_link_;
  std::vector<std::unique_ptr<Queues>> queues_;  // by core
  std::vector<std::unique_ptr<engine::JobRuntime>> runtimes_;
  std::vector<std::unique_ptr<engine::Engine>> engines_;
};

/// A host's configuration of the job in a scenario, from this plan on.
job::JobConfig job_config(const Scenario& scenario, const api::Plan& plan, api::NodeId node,
                          bool joins = false, CorePart core = {});
/// The job's key in an epoch. As in the session, each epoch has another key.
wire::Key key_of(std::uint32_t epoch);
/// The rate of every node's link, in bit/s, as planners get it.
std::vector<std::uint64_t> link_rates(const Scenario& scenario);

}  // namespace gradplane::sim
