// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/config/config.h"
#include "control/daemon/job_bounds.h"
#include "control/daemon/placement.h"
#include "control/daemon/plan_answers.h"
#include "control/daemon/ranks.h"
#include "control/daemon/round_log.h"
#include "control/session/actions.h"
#include "control/session/admission.h"
#include "dataplane/api/commands.h"
#include "dataplane/engine/job_runtime.h"
#include "dataplane/hop/counters.h"

namespace gradplane::daemon {

/// The part of a job that one poll core carries.
struct JobPart {
  std::size_t core = 0;
  std::unique_ptr<engine::JobRuntime> runtime;
  // kLeaving: we have asked the poll loop to give it back.
  enum class State : std::uint8_t { kRunning, kLeaving, kBack };
  State state = State::kRunning;
};

/// A job that the poll loops run, or are giving back.
struct InstalledJob {
  std::uint32_t id = 0;
  std::uint32_t first_epoch = 0;  // tells the job from others that have or had its id
  // The epoch of the plan that it was installed with, by which the poll loop names the job: after a
  // node has left a job and joined it again, it has two installations of it for a while.
  std::uint32_t installed_epoch = 0;
  std::uint32_t epoch = 0;  // of the newest plan that is committed
  PlanKind kind = PlanKind::kStar;
  api::Plan plan;                             // the newest that is committed
  std::optional<api::Plan> plan_before = {};  // set while rounds of it are open or to come
  api::Plan next_plan;                        // a plan that is prepared, or a copy of `plan`
  std::uint32_t world_size = 0;
  std::string label;
  bool grants = false;  // receivers grant their links to their senders
  std::string run_id;
  std::vector<session::LocalRank> local_ranks;
  std::uint32_t user = session::kRootUser;  // of its ranks here
  std::unique_ptr<JobBounds> bounds;        // destroyed after the parts, which read its buckets
  std::vector<JobPart> parts;               // at least one
  PlanAnswers answers;
  RoundLog rounds = {};
  enum class State : std::uint8_t { kRunning, kUnwanted };
  State state = State::kRunning;
};

/// The plans whose packets may come: the newest that is committed, the one before until the poll
/// loop has given it back, and one that is prepared.
std::vector<const api::Plan*> live_plans(const InstalledJob& job);

/// The rate of each node's link in bits per second, by node; 0: not known.
std::vector<std::uint64_t> link_rates_of(const config::Config& config);

/// What is left of a job that has ended here.
struct EndedJob {
  std::uint32_t id = 0;
  std::uint32_t first_epoch = 0;
  std::uint32_t epoch = 0;  // of its last plan
  PlanKind kind = PlanKind::kStar;
  std::uint32_t world_size = 0;
  std::string label;
  std::string run_id;
  hop::Counters counters;
};

/// The jobs that the poll loops have. Control thread.
class JobTable {
 public:
  /// `commands` are the queues to the poll loops, by core. They must outlive this.
  JobTable(const config::Config& config, std::vector<api::CommandQueue*> commands)
      : config_(config), commands_(std::move(commands)) {}

  /// Builds the job with all its memory and hands it to the poll loops.
  Status install(const session::InstallJob& order, RankTable& ranks);
  /// Asks the poll loops to give the job back. It is gone after the last call of on_returned().
  void remove(std::uint32_t id, std::uint32_t first_epoch);
  /// Orders the poll loops to prepare another plan of a job. Each answers with an event.
  Status prepare_plan(const session::PreparePlan& order);
  void commit_plan(const session::CommitPlan& order);
  void abort_plan(const session::AbortPlan& order);
  void end_older_plan(const session::EndOlderPlan& order);
  /// Takes a poll loop's event about a plan, and destroys the plan if it comes back with it. Once
  /// all of the job's cores have answered, returns the event to pass on to the session.
  std::optional<api::Event> take_plan_event(const api::Event& event);
  /// Sends the orders about plans that wait, and asks for each part of a job that is not wanted any
  /// more, as far as the command queues have room. Call it in every turn of the event loop.
  void ask_back();
  /// Installs a bucket, whose rounds may then miss what its table allows. Does nothing when the job
  /// is not wanted any more. An Error: the job has to do without the bucket.
  Status install_bounds(const session::InstallBounds& order);
  /// Hands new buckets to the poll loops, as far as their queues have room. Call it in every turn
  /// of the event loop. False: some are left.
  bool hand_over_buckets();
  std::size_t inbox_bytes_for(const InstalledJob& job) const;
  void learn_bounds();
  /// A warning for each job that has one; see JobBounds::take_close_warning().
  std::vector<std::string> take_close_warnings(Instant now);
  /// Keeps a poll loop's report of a round. Returns its job, or null when that is not here.
  const InstalledJob* keep_report(const api::JobRoundReport& report);
  /// Call it when a poll loop has given its part of a job back. The job cannot go on without a
  /// part, so this asks for the others, too.
  void on_returned(engine::JobRuntime* runtime);
  /// Call it when a poll loop has refused its part of a job.
  void on_refused(engine::JobRuntime* runtime);

  /// The job to which a part belongs; null when it is not wanted any more, so that an event of an
  /// old installation is never taken for one of a new installation.
  const InstalledJob* find_running(const engine::JobRuntime* runtime) const;
  const std::vector<InstalledJob>& installed() const { return jobs_; }
  /// A number that changes whenever live_plans() of some job may change.
  std::uint64_t plans_revision() const { return plans_revision_; }
  /// The running job that the session names so; null when there is none.
  const InstalledJob* find_running(std::uint32_t id, std::uint32_t first_epoch) const;
  /// The running job with this id. For the id 0 the first running job, or null when there is none.
  /// An Error names the jobs that run.
  Result<const InstalledJob*> find_asked(std::uint32_t id) const;
  std::vector<std::uint32_t> running_ids() const;
  /// The last kEndedKept jobs that have ended here, oldest first.
  const std::deque<EndedJob>& ended() const { return ended_; }
  bool empty() const { return jobs_.empty(); }

 private:
  static constexpr std::size_t kEndedKept = 16;

  struct PlanOrder {
    std::size_t core = 0;
    api::Command command;
  };

  InstalledJob* find(std::uint32_t id, std::uint32_t first_epoch);
  InstalledJob* owner_of(const engine::JobRuntime* runtime);
  void drop_plan_orders(const InstalledJob& job);
  Result<std::vector<JobPart>> make_parts(
      const session::InstallJob& order, const std::vector<std::uint16_t>& numbers,
      const std::vector<std::shared_ptr<engine::RankChannel>>& channels) const;
  void plan_order(const InstalledJob& job, api::Command::Kind kind, std::uint32_t epoch,
                  std::uint32_t round);
  void plan_order(const JobPart& part, api::Command::Kind kind, std::uint32_t epoch,
                  std::uint32_t round, job::Plan* plan = nullptr);
  void on_plan_returned(InstalledJob& job, std::uint32_t epoch);

  const config::Config& config_;
  std::vector<api::CommandQueue*> commands_;  // by core
  std::vector<InstalledJob> jobs_;
  std::uint64_t plans_revision_ = 0;
  std::deque<PlanOrder> plan_orders_;  // not yet sent to the poll loops
  std::deque<EndedJob> ended_;
};

}  // namespace gradplane::daemon
