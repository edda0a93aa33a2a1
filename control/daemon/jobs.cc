// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "dataplane/base/assert.h"
#include "dataplane/engine/local_plan.h"

namespace gradplane::daemon {
namespace {

/// Entries of the command queue that buckets leave to commands about whole jobs.
constexpr std::size_t kKeptRoom = 2 * kMaxJobs;

/// By node; 0: not known.
std::vector<std::uint64_t> link_rates(const config::Config& config) {
  std::vector<std::uint64_t> rates;
  for (const config::NodeConfig& node : config.cluster.nodes) {
    rates.push_back(node.port.link_rate_bits_per_s.value_or(0));
  }
  return rates;
}

job::JobConfig job_config(const config::Config& config, const session::InstallJob& order) {
  job::JobConfig job;
  job.job = order.job_id;
  job.epoch = order.plan.epoch;
  job.joins = order.joins();
  job.self = config.self;
  job.authenticate = config.authenticate;
  job.key = order.packet_key;
  job.block_bytes = config.block_bytes;
  job.round_bytes = config.round_bytes;
  job.forward_order = config.forward_order;
  const config::GatherConfig& gather = config.gather;
  job.compensation = gather.compensation;
  job.close_limits.floor = static_cast<float>(gather.floor_ppm) / 1e6F;
  job.close_limits.strict_rounds = gather.strict_rounds;
  job.close_limits.slack = gather.slack;
  job.close_limits.absent_after = gather.absent_after.value_or(Duration());
  job.measure_energy = order.learn_bounds;
  job.congestion = config::congestion_of(config, order.label);
  job.grants = config.grants.enabled;
  job.weight = config::weight_of(config, order.label);
  job.stall_after = job::stall_after(config.liveness.suspect_after);
  job.staleness_steps = config.training.staleness_steps();
  engine::fill_local_plan(job, order.plan, config.self, link_rates(config),
                          config.multicast.enabled);
  return job;
}

}  // namespace

std::vector<const api::Plan*> live_plans(const InstalledJob& job) {
  std::vector<const api::Plan*> plans = {&job.plan};
  if (job.plan_before) plans.push_back(&*job.plan_before);
  if (job.next_plan.epoch != job.plan.epoch) plans.push_back(&job.next_plan);
  return plans;
}

Status JobTable::install(const session::InstallJob& order, RankTable& ranks) {
  if (commands_.room() == 0) {
    return Error{"the poll loop does not take commands; is its processor overloaded?"};
  }
  std::vector<std::uint16_t> numbers;
  std::vector<std::shared_ptr<engine::RankChannel>> channels;
  std::string run_id;
  std::uint32_t user = session::kRootUser;
  for (const session::LocalRank& local : order.local_ranks) {
    const auto rank = ranks.find(local.handle);
    if (rank == ranks.end()) return Error{fmt::format("rank {} is no longer attached", local.rank)};
    numbers.push_back(local.rank);
    channels.push_back(rank->second.channel);
    run_id = rank->second.attach.run_id;
    user = rank->second.user;
  }
  std::unique_ptr<engine::JobRuntime> runtime;
  try {
    runtime = std::make_unique<engine::JobRuntime>(job_config(config_, order), numbers, channels);
  } catch (const std::bad_alloc&) {
    return Error{
        fmt::format("node {} has not enough memory for the job's rounds; lower rounds.bytes",
                    config_.self_node().name)};
  }
  for (const session::LocalRank& local : order.local_ranks) ranks.at(local.handle).in_engine = true;
  api::Command add;
  add.kind = api::Command::Kind::kAddJob;
  add.job = runtime.get();
  GP_ASSERT(commands_.push(add));
  jobs_.push_back({.id = order.job_id,
                   .first_epoch = order.first_epoch,
                   .installed_epoch = order.plan.epoch,
                   .epoch = order.plan.epoch,
                   .kind = order.plan.kind,
                   .plan = order.plan,
                   .next_plan = order.plan,
                   .world_size = order.world_size,
                   .label = order.label,
                   .run_id = run_id,
                   .local_ranks = order.local_ranks,
                   .user = user,
                   .bounds = std::make_unique<JobBounds>(order.plan, config_.self),
                   .runtime = std::move(runtime)});
  ++plans_revision_;
  return Nothing{};
}

void JobTable::remove(std::uint32_t id, std::uint32_t first_epoch) {
  if (InstalledJob* job = find(id, first_epoch)) {
    job->state = InstalledJob::State::kUnwanted;
    // Its plans come back with it.
    std::erase_if(plan_orders_, [job](const api::Command& order) {
      if (order.job != job->runtime.get()) return false;
      if (order.plan != nullptr) job->runtime->destroy_plan(order.plan);
      return true;
    });
  }
  ask_back();
}

const InstalledJob* JobTable::find_running(std::uint32_t id, std::uint32_t first_epoch) const {
  for (const InstalledJob& job : jobs_) {
    if (job.id == id && job.first_epoch == first_epoch &&
        job.state == InstalledJob::State::kRunning)
      return &job;
  }
  return nullptr;
}

InstalledJob* JobTable::find(std::uint32_t id, std::uint32_t first_epoch) {
  return const_cast<InstalledJob*>(std::as_const(*this).find_running(id, first_epoch));
}

Status JobTable::prepare_plan(const session::PreparePlan& order) {
  InstalledJob* job = find(order.job_id, order.first_epoch);
  if (job == nullptr) return Error{"the job does not run here"};
  if (!job->runtime->has_room_for_plan()) {
    return Error{
        fmt::format("node {} still holds the plan before, or one that was aborted; ask again "
                    "in a moment",
                    config_.self_node().name)};
  }
  std::unique_ptr<job::Plan> plan;
  try {
    job::PlanConfig local = engine::local_plan(order.plan, config_.self, link_rates(config_),
                                               config_.grants.enabled, config_.multicast.enabled);
    local.key = order.packet_key;
    plan = job->runtime->make_plan(local);
  } catch (const std::bad_alloc&) {
  }
  if (plan == nullptr) {
    return Error{fmt::format("node {} has not enough memory for a second plan; lower rounds.bytes",
                             config_.self_node().name)};
  }
  job->next_plan = order.plan;
  ++plans_revision_;
  plan_order(*job, api::Command::Kind::kPreparePlan, order.plan.epoch, 0, plan.release());
  return Nothing{};
}

void JobTable::commit_plan(const session::CommitPlan& order) {
  InstalledJob* job = find(order.job_id, order.first_epoch);
  if (job == nullptr) return;
  if (job->plan.epoch != order.epoch) job->plan_before = std::move(job->plan);
  job->epoch = order.epoch;
  job->kind = job->next_plan.kind;
  job->plan = job->next_plan;
  ++plans_revision_;
  job->plan.activation_round = order.activation_round;
  job->bounds->use(job->next_plan);
  plan_order(*job, api::Command::Kind::kCommitPlan, order.epoch, order.activation_round);
}

void JobTable::abort_plan(const session::AbortPlan& order) {
  if (InstalledJob* job = find(order.job_id, order.first_epoch))
    plan_order(*job, api::Command::Kind::kAbortPlan, order.epoch, 0);
}

void JobTable::end_older_plan(const session::EndOlderPlan& order) {
  if (InstalledJob* job = find(order.job_id, order.first_epoch))
    plan_order(*job, api::Command::Kind::kEndOlderPlan, order.epoch, 0);
}

void JobTable::on_plan_returned(const engine::JobRuntime* runtime, std::uint32_t epoch) {
  for (InstalledJob& job : jobs_) {
    if (job.runtime.get() != runtime) continue;
    if (job.plan_before && job.plan_before->epoch == epoch) job.plan_before.reset();
    if (job.next_plan.epoch == epoch) job.next_plan = job.plan;
    ++plans_revision_;
  }
}

void JobTable::plan_order(const InstalledJob& job, api::Command::Kind kind, std::uint32_t epoch,
                          std::uint32_t round, job::Plan* plan) {
  api::Command& order = plan_orders_.emplace_back();
  order.kind = kind;
  order.job = job.runtime.get();
  order.epoch = epoch;
  order.round = round;
  order.plan = plan;
  ask_back();
}

void JobTable::ask_back() {
  while (!plan_orders_.empty() && commands_.push(plan_orders_.front())) plan_orders_.pop_front();
  for (InstalledJob& job : jobs_) {
    if (job.state != InstalledJob::State::kUnwanted) continue;
    api::Command remove;
    remove.kind = api::Command::Kind::kRemoveJob;
    remove.job = job.runtime.get();
    if (!commands_.push(remove)) return;
    job.state = InstalledJob::State::kLeaving;
  }
}

Status JobTable::install_bounds(const session::InstallBounds& order) {
  if (InstalledJob* job = find(order.job_id, order.first_epoch)) {
    job->runtime->allow_inbox_bytes(inbox_bytes_for(*job));
    const Status added = job->bounds->add(*job->runtime, order.table, order.learn_budget);
    if (!added) return added;
  }
  hand_over_buckets();
  return Nothing{};
}

/// What other jobs of its user leave to a job, also those that the poll loop has still to give
/// back.
std::size_t JobTable::inbox_bytes_for(const InstalledJob& job) const {
  if (job.user == session::kRootUser) return kMaxInboxBytes;
  std::size_t left = config_.quotas.updates;
  for (const InstalledJob& other : jobs_) {
    if (&other == &job || other.user != job.user) continue;
    left -= std::min(left, other.runtime->inbox_bytes());
  }
  return left;
}

bool JobTable::hand_over_buckets() {
  bool all = true;
  for (InstalledJob& job : jobs_) {
    if (job.state != InstalledJob::State::kRunning) continue;
    all = job.bounds->hand_over(job.runtime.get(), commands_, kKeptRoom) && all;
  }
  return all;
}

void JobTable::learn_bounds() {
  for (InstalledJob& job : jobs_) job.bounds->learn();
}

std::vector<std::string> JobTable::take_close_warnings(Instant now) {
  std::vector<std::string> warnings;
  for (InstalledJob& job : jobs_) {
    const std::string text = job.bounds->take_close_warning(config_, now);
    if (!text.empty()) warnings.push_back(fmt::format("job {}: {}", job.label, text));
  }
  return warnings;
}

const InstalledJob* JobTable::keep_report(const api::JobRoundReport& report) {
  for (InstalledJob& job : jobs_) {
    if (job.id != report.job || job.installed_epoch != report.epoch) continue;
    job.rounds.add(report.report);
    return &job;
  }
  return nullptr;
}

void JobTable::on_returned(engine::JobRuntime* runtime) {
  const auto at = std::find_if(jobs_.begin(), jobs_.end(), [&](const InstalledJob& job) {
    return job.runtime.get() == runtime;
  });
  if (at == jobs_.end()) return;  // refused and asked back at once: the other answer came first
  // A node can leave a job and join it again: each job is told once.
  std::erase_if(ended_, [&](const EndedJob& ended) { return ended.id == at->id; });
  ended_.push_back({.id = at->id,
                    .first_epoch = at->first_epoch,
                    .epoch = at->epoch,
                    .kind = at->kind,
                    .world_size = at->world_size,
                    .label = at->label,
                    .run_id = at->run_id,
                    .counters = runtime->job().counters()});
  if (ended_.size() > kEndedKept) ended_.pop_front();
  at->runtime.reset();  // before the buckets that it may point to
  jobs_.erase(at);
  ++plans_revision_;
}

const InstalledJob* JobTable::find_running(const engine::JobRuntime* runtime) const {
  for (const InstalledJob& job : jobs_) {
    if (job.runtime.get() != runtime) continue;
    return job.state == InstalledJob::State::kRunning ? &job : nullptr;
  }
  return nullptr;
}

Result<const InstalledJob*> JobTable::find_asked(std::uint32_t id) const {
  std::string known;
  for (const InstalledJob& job : jobs_) {
    if (job.state != InstalledJob::State::kRunning) continue;
    if (id == 0 || job.id == id) return &job;
    known += fmt::format(" {:08x}", job.id);
  }
  if (id == 0) return nullptr;
  return Error{fmt::format("there is no job {:08x} here; there are:{}", id,
                           known.empty() ? " none" : known)};
}

std::vector<std::uint32_t> JobTable::running_ids() const {
  std::vector<std::uint32_t> ids;
  for (const InstalledJob& job : jobs_) {
    if (job.state == InstalledJob::State::kRunning) ids.push_back(job.id);
  }
  return ids;
}

}  // namespace gradplane::daemon
