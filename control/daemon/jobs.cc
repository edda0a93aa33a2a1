// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "control/daemon/node_snapshot.h"
#include "control/daemon/numa.h"
#include "dataplane/base/assert.h"
#include "dataplane/engine/local_plan.h"

namespace gradplane::daemon {
namespace {

/// Entries of the command queue that buckets leave free for commands about whole jobs.
constexpr std::size_t kKeptRoom = 2 * kMaxJobs;

job::JobConfig job_config(const config::Config& config, const session::InstallJob& order,
                          CorePart core) {
  job::JobConfig job;
  job.core = core;
  job.job = order.job_id;
  job.epoch = order.plan.epoch;
  job.joins = order.joins();
  job.self = config.self;
  job.authenticate = config.authenticate;
  job.key = engine::key_of_part(order.packet_key, core.index);
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
  job.congestion.rate_bits_per_second /= core.count;
  job.grants = order.grants;
  job.weight = config::weight_of(config, order.label);
  job.stall_after = job::stall_after(config.liveness.suspect_after);
  job.staleness_steps = config.training.staleness_steps();
  engine::fill_local_plan(job, order.plan, config.self, link_rates_of(config),
                          config.multicast.enabled);
  return job;
}

std::vector<engine::JobRuntime*> runtimes_of(const InstalledJob& job) {
  std::vector<engine::JobRuntime*> runtimes;
  for (const JobPart& part : job.parts) runtimes.push_back(part.runtime.get());
  return runtimes;
}

}  // namespace

std::vector<const api::Plan*> live_plans(const InstalledJob& job) {
  std::vector<const api::Plan*> plans = {&job.plan};
  if (job.plan_before) plans.push_back(&*job.plan_before);
  if (job.next_plan.epoch != job.plan.epoch) plans.push_back(&job.next_plan);
  return plans;
}

Result<std::vector<JobPart>> JobTable::make_parts(
    const session::InstallJob& order, const std::vector<std::uint16_t>& numbers,
    const std::vector<std::shared_ptr<engine::RankChannel>>& channels) const {
  const Placement place = placement_of(config_, order.job_id);
  std::vector<JobPart> parts;
  try {
    for (std::size_t p = 0; p < place.count; ++p) {
      const std::size_t core = place.first + p;
      if (commands_[core]->room() == 0)
        return Error{"a poll loop does not take commands; is its processor overloaded?"};
      const CorePart part{static_cast<std::uint16_t>(p), static_cast<std::uint16_t>(place.count)};
      const MemoryNear near(poll_cpu(config_, core));
      parts.push_back({.core = core,
                       .runtime = std::make_unique<engine::JobRuntime>(
                           job_config(config_, order, part), numbers, channels)});
    }
  } catch (const std::bad_alloc&) {
    return Error{
        fmt::format("node {} has not enough memory for the job's rounds; lower rounds.bytes",
                    config_.self_node().name)};
  }
  return parts;
}

Status JobTable::install(const session::InstallJob& order, RankTable& ranks) {
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
  auto parts = make_parts(order, numbers, channels);
  if (!parts) return parts.error();
  for (const session::LocalRank& local : order.local_ranks) ranks.at(local.handle).in_engine = true;
  for (const JobPart& part : parts.value()) {
    api::Command add;
    add.kind = api::Command::Kind::kAddJob;
    add.job = part.runtime.get();
    GP_ASSERT(commands_[part.core]->push(add));
  }
  const PlanAnswers answers(parts.value().size());
  jobs_.push_back({.id = order.job_id,
                   .first_epoch = order.first_epoch,
                   .installed_epoch = order.plan.epoch,
                   .epoch = order.plan.epoch,
                   .kind = order.plan.kind,
                   .plan = order.plan,
                   .next_plan = order.plan,
                   .world_size = order.world_size,
                   .label = order.label,
                   .grants = order.grants,
                   .run_id = run_id,
                   .local_ranks = order.local_ranks,
                   .user = user,
                   .bounds = std::make_unique<JobBounds>(order.plan, config_.self),
                   .parts = std::move(parts.value()),
                   .answers = answers});
  ++plans_revision_;
  return Nothing{};
}

void JobTable::remove(std::uint32_t id, std::uint32_t first_epoch) {
  if (InstalledJob* job = find(id, first_epoch)) {
    job->state = InstalledJob::State::kUnwanted;
    drop_plan_orders(*job);
  }
  ask_back();
}

/// Drops the orders about plans of a job that ends. Its plans come back with the job.
void JobTable::drop_plan_orders(const InstalledJob& job) {
  std::erase_if(plan_orders_, [this, &job](const PlanOrder& order) {
    if (owner_of(order.command.job) != &job) return false;
    if (order.command.plan != nullptr) order.command.job->destroy_plan(order.command.plan);
    return true;
  });
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

void JobTable::ask_back() {
  while (!plan_orders_.empty()) {
    const PlanOrder& order = plan_orders_.front();
    if (!commands_[order.core]->push(order.command)) break;
    plan_orders_.pop_front();
  }
  for (InstalledJob& job : jobs_) {
    if (job.state != InstalledJob::State::kUnwanted) continue;
    for (JobPart& part : job.parts) {
      if (part.state != JobPart::State::kRunning) continue;
      api::Command remove;
      remove.kind = api::Command::Kind::kRemoveJob;
      remove.job = part.runtime.get();
      if (commands_[part.core]->push(remove)) part.state = JobPart::State::kLeaving;
    }
  }
}

Status JobTable::install_bounds(const session::InstallBounds& order) {
  if (InstalledJob* job = find(order.job_id, order.first_epoch)) {
    for (const JobPart& part : job->parts) part.runtime->allow_inbox_bytes(inbox_bytes_for(*job));
    // A bucket's large memory is what `carry` keeps and updates on their way, both of jobs with one
    // part.
    const MemoryNear near(poll_cpu(config_, job->parts.front().core));
    const Status added = job->bounds->add(runtimes_of(*job), order.table, order.learn_budget);
    if (!added) return added;
  }
  hand_over_buckets();
  return Nothing{};
}

/// The bytes for inboxes that the other jobs of its user leave to a job. Jobs that the poll loop
/// has still to give back count, too.
std::size_t JobTable::inbox_bytes_for(const InstalledJob& job) const {
  if (job.user == session::kRootUser) return kMaxInboxBytes;
  std::size_t left = config_.quotas.updates;
  for (const InstalledJob& other : jobs_) {
    if (&other == &job || other.user != job.user) continue;
    for (const JobPart& part : other.parts) left -= std::min(left, part.runtime->inbox_bytes());
  }
  return left;
}

bool JobTable::hand_over_buckets() {
  bool all = true;
  for (InstalledJob& job : jobs_) {
    if (job.state != InstalledJob::State::kRunning) continue;
    for (std::size_t p = 0; p < job.parts.size(); ++p) {
      const JobPart& part = job.parts[p];
      all = job.bounds->hand_over(p, part.runtime.get(), *commands_[part.core], kKeptRoom) && all;
    }
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
    job.rounds.add(report.report, report.part);
    return &job;
  }
  return nullptr;
}

void JobTable::on_refused(engine::JobRuntime* runtime) {
  InstalledJob* const at = owner_of(runtime);
  if (at == nullptr) return;
  const auto part = std::find_if(at->parts.begin(), at->parts.end(), [runtime](const auto& other) {
    return other.runtime.get() == runtime;
  });
  // A poll loop that has been asked for the part back will answer that, too. Until then it may use
  // the address, so the part stays.
  if (part->state == JobPart::State::kRunning) on_returned(runtime);
}

void JobTable::on_returned(engine::JobRuntime* runtime) {
  InstalledJob* const at = owner_of(runtime);
  if (at == nullptr) return;
  hop::Counters counters;
  bool all_back = true;
  for (JobPart& part : at->parts) {
    if (part.runtime.get() == runtime) part.state = JobPart::State::kBack;
    all_back = all_back && part.state == JobPart::State::kBack;
  }
  if (!all_back) {
    if (at->state == InstalledJob::State::kRunning) remove(at->id, at->first_epoch);
    return;
  }
  drop_plan_orders(*at);  // there are some if the poll loop has refused the job
  for (const JobPart& part : at->parts) add_part(counters, part.runtime->job().counters());
  // A node may leave a job and join it again, but each job stands in the list once.
  std::erase_if(ended_, [&](const EndedJob& ended) { return ended.id == at->id; });
  ended_.push_back({.id = at->id,
                    .first_epoch = at->first_epoch,
                    .epoch = at->epoch,
                    .kind = at->kind,
                    .world_size = at->world_size,
                    .label = at->label,
                    .run_id = at->run_id,
                    .counters = counters});
  if (ended_.size() > kEndedKept) ended_.pop_front();
  at->parts.clear();  // before the buckets, to which they may point
  jobs_.erase(jobs_.begin() + (at - jobs_.data()));
  ++plans_revision_;
}

InstalledJob* JobTable::owner_of(const engine::JobRuntime* runtime) {
  for (InstalledJob& job : jobs_) {
    for (const JobPart& part : job.parts) {
      if (part.runtime.get() == runtime) return &job;
    }
  }
  return nullptr;
}

const InstalledJob* JobTable::find_running(const engine::JobRuntime* runtime) const {
  const InstalledJob* const job = const_cast<JobTable*>(this)->owner_of(runtime);
  return job != nullptr && job->state == InstalledJob::State::kRunning ? job : nullptr;
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
