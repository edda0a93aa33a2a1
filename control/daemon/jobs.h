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

/// What one poll core has of a job.
struct JobPart {
  std::size_t core = 0;
  std::unique_ptr<engine::JobRuntime> runtime;
  enum class State : std::uint8_t { kRunning, kLeaving, kBack };  // kLeaving: asked for it back
  State state = State::kRunning;
};

/// A job that the poll loops run, or are giving back.
struct InstalledJob {
  std::uint32_t id = 0;
  std::uint32_t first_epoch = 0;  // names the job among those that have or had its id
  // Of the plan that it was installed with. The poll loop names the job by it: a node that leaves a
  // job and joins it again has both for a while.
  std::uint32_t installed_epoch = 0;
  std::uint32_t epoch = 0;  // of the newest plan that is committed
  PlanKind kind = PlanKind::kStar;
  api::Plan plan;                             // the same
  std::optional<api::Plan> plan_before = {};  // while rounds of it are open or to come
  api::Plan next_plan;                        // that is prepared, or the same as `plan`
  std::uint32_t world_size = 0;
  std::string label;
  std::string run_id;
  std::vector<session::LocalRank> local_ranks;
  std::uint32_t user = session::kRootUser;  // of its ranks here
  std::unique_ptr<JobBounds> bounds;        // the parts look into its buckets: destroyed after them
  std::vector<JobPart> parts;               // at least one
  PlanAnswers answers;
  RoundLog rounds = {};
  enum class State : std::uint8_t { kRunning, kUnwanted };
  State state = State::kRunning;
};

/// The plans whose packets may come: that of the newest rounds, the one before while it is not
/// given back, and one that is prepared.
std::vector<const api::Plan*> live_plans(const InstalledJob& job);

/// What the link of each node carries, by node; 0: not known.
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
  /// `commands`: to the poll loop of each core. They outlive this.
  JobTable(const config::Config& config, std::vector<api::CommandQueue*> commands)
      : config_(config), commands_(std::move(commands)) {}

  /// Builds the job with all its memory and hands it to the poll loops.
  Status install(const session::InstallJob& order, RankTable& ranks);
  /// Wants the job back from the poll loop; it is gone when on_returned() has been called.
  void remove(std::uint32_t id, std::uint32_t first_epoch);
  /// Has the poll loop get ready for another plan of a job; its answer is an event.
  Status prepare_plan(const session::PreparePlan& order);
  void commit_plan(const session::CommitPlan& order);
  void abort_plan(const session::AbortPlan& order);
  void end_older_plan(const session::EndOlderPlan& order);
  /// What a poll loop says of a plan: destroys the plan that comes back with it. Gives what the
  /// session is to be told of the job, once all of the job's cores have answered.
  std::optional<api::Event> take_plan_event(const api::Event& event);
  /// Tells the poll loop what is to be done about plans, and asks it for every job that is not
  /// wanted any more, as far as its queue has room. Call it at every turn.
  void ask_back();
  /// From now on rounds of one bucket may miss what its table allows. Nothing happens when the job
  /// is not wanted any more. An Error: the job has to do without the bucket.
  Status install_bounds(const session::InstallBounds& order);
  /// Hands new buckets to the poll loop, as far as its queue has room. Call it at every turn.
  /// False: some are left.
  bool hand_over_buckets();
  std::size_t inbox_bytes_for(const InstalledJob& job) const;
  void learn_bounds();
  /// A line for each job with rounds that closed badly; see JobBounds.
  std::vector<std::string> take_close_warnings(Instant now);
  /// Keeps what the poll loop says of a round. The job that it is of; null when it is not here.
  const InstalledJob* keep_report(const api::JobRoundReport& report);
  /// A poll loop has given its part of a job back. Without one part the job cannot go on: it wants
  /// the others back, too.
  void on_returned(engine::JobRuntime* runtime);
  /// A poll loop has not taken its part of a job.
  void on_refused(engine::JobRuntime* runtime);

  /// The job that runs there; null when it is not wanted any more, so that what an old epoch still
  /// says is never taken for word of a new one.
  const InstalledJob* find_running(const engine::JobRuntime* runtime) const;
  const std::vector<InstalledJob>& installed() const { return jobs_; }
  /// Another number whenever live_plans() of some job may be others.
  std::uint64_t plans_revision() const { return plans_revision_; }
  /// The job that runs and is named so by the session; null when there is none.
  const InstalledJob* find_running(std::uint32_t id, std::uint32_t first_epoch) const;
  /// Of the jobs that run: the one with this id; of 0 the first, or null when there is none. An
  /// Error names those that there are.
  Result<const InstalledJob*> find_asked(std::uint32_t id) const;
  std::vector<std::uint32_t> running_ids() const;
  /// The last kEndedKept, oldest first.
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
  std::deque<PlanOrder> plan_orders_;  // that the poll loops have not been given
  std::deque<EndedJob> ended_;
};

}  // namespace gradplane::daemon
