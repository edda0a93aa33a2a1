// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/member.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "control/session/plan_codec.h"
#include "control/session/settings.h"
#include "control/session/text.h"

namespace gradplane::session {

using protocol::JobKey;

Member::Member(const SessionConfig& config, Outbox& outbox) : config_(config), outbox_(outbox) {}

bool Member::on_message(const protocol::NodeMessage& message, Instant now) {
  return std::visit(
      [&](const auto& m) {
        constexpr bool kAtAnyTime = requires {
          on(m);
        };
        constexpr bool kInTime = requires {
          on(m, now);
        };
        if constexpr (kAtAnyTime) on(m);
        if constexpr (kInTime) on(m, now);
        return kAtAnyTime || kInTime;
      },
      message);
}

void Member::on_coordinator_connected() {
  coordinator_trouble_.clear();
  for (const auto& [key, job] : jobs_)
    if (job.state == JobState::kWaiting) send_join(job, ranks_of(job));
}

void Member::on_coordinator_lost(const std::string& why) {
  const std::string reason =
      node_text(config_, config_.coordinator) + ", which coordinates the jobs, " + why;
  coordinator_trouble_ = reason;
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    const auto next = std::next(it);
    if (it->second.state == JobState::kWaiting)
      tell_waiting(it->second, {{}, 0, reason});
    else
      end(it, reason);
    it = next;
  }
}

void Member::on_job_error(std::uint32_t job_id, const std::string& text) {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
    return entry.second.id == job_id && entry.second.state != JobState::kWaiting;
  });
  if (found == jobs_.end()) return;
  const std::string reason = node_text(config_, config_.self) + ": " + text;
  outbox_.tell_coordinator(config_.coordinator,
                           protocol::Failed{found->first, found->second.epoch, reason});
  end(found, reason);
}

void Member::describe(RankHandle handle, const api::BucketBounds& table) {
  for (auto& [key, job] : jobs_) {
    for (const LocalRank& local : job.ranks) {
      // All ranks have the same buckets; one of them is enough.
      if (local.handle != handle || local.rank != 0) continue;
      std::vector<std::vector<std::byte>> parts = encode_table(table);
      std::move(parts.begin(), parts.end(), std::back_inserter(job.table_parts));
    }
  }
}

bool Member::send_table_part() {
  for (auto& [key, job] : jobs_) {
    if (job.state != JobState::kReady || job.table_parts.empty()) continue;
    outbox_.tell_coordinator(
        config_.coordinator,
        protocol::DescribeBucket{key, job.epoch, std::move(job.table_parts.front())});
    job.table_parts.pop_front();
    return true;
  }
  return false;
}

void Member::on(const protocol::BucketBounds& m) {
  const auto found = find(m.key, m.epoch);
  if (found == jobs_.end()) return;
  Job& job = found->second;
  Result<TablePart> part = decode_table_part(m.part);
  auto table = part.ok() ? job.bounds.add(std::move(part.value()))
                         : Result<std::optional<api::BucketBounds>>(part.error());
  if (!table.ok()) {
    outbox_.log(LogLevel::kError, job_text(job.label, job.id) + ": " +
                                      node_text(config_, config_.coordinator) +
                                      " sent bounds that cannot be: " + table.error().message);
    return;
  }
  if (!table.value()) return;
  outbox_.act(InstallBounds{job.id, job.epoch, std::move(*table.value()), m.learn_budget});
}

void Member::on(const protocol::WaitingFor& m) {
  const auto found = jobs_.find(m.key);
  if (found == jobs_.end() || found->second.state != JobState::kWaiting ||
      found->second.attempt != m.attempt)
    return;
  Job& job = found->second;
  const std::size_t named = std::min(m.missing.size(), protocol::kMaxMissingNamed);
  protocol::Waiting waiting;
  waiting.missing.assign(m.missing.begin(), m.missing.begin() + static_cast<std::ptrdiff_t>(named));
  waiting.missing_count = m.missing_count;
  waiting.reason = m.missing.empty() ? "all ranks are here; the plan is being made"
                                     : "waiting for " + ranks_text(m.missing) + " of " +
                                           std::to_string(job.world_size) + " to attach";
  tell_waiting(job, std::move(waiting));
}

void Member::on(const protocol::Refused& m) {
  const auto found = jobs_.find(m.key);
  if (found == jobs_.end() || found->second.state != JobState::kWaiting ||
      found->second.attempt != m.attempt)
    return;
  Job& job = found->second;
  const std::size_t before = job.ranks.size();
  for (const std::uint16_t rank : m.ranks) {
    const auto local = std::find_if(job.ranks.begin(), job.ranks.end(),
                                    [&](const LocalRank& r) { return r.rank == rank; });
    if (local == job.ranks.end()) continue;
    outbox_.act(NotifyRank{local->handle, protocol::JobFailed{m.reason}});
    job.ranks.erase(local);
  }
  outbox_.failures.push_back({job.id, job.label, m.reason, Instant()});
  outbox_.log(LogLevel::kWarn, job_text(job.label, job.id) + ": refused: " + m.reason);
  // A Join that names the refused ranks may be on its way, and the coordinator may take it: so the
  // last that it hears names the ranks that are left.
  if (job.ranks.size() < before) send_join(job, ranks_of(job));
  if (job.ranks.empty()) jobs_.erase(found);
}

void Member::on(const protocol::Prepare& m, Instant now) {
  const std::string self = node_text(config_, config_.self);
  const std::string difference = difference_text(config_.job_settings, self, m.settings,
                                                 node_text(config_, config_.coordinator));
  if (!difference.empty()) {
    decline(m, difference);
    return;
  }
  Result<api::Plan> plan = acceptable_plan(m);
  if (!plan.ok()) {
    decline(m, self + ": " + plan.error().message);
    return;
  }
  if (const auto denial = why_no_slot(m.key)) {
    outbox_.count(denial->why);
    decline(m, denial->text);
    return;
  }
  install(m, std::move(plan.value()), now);
  outbox_.tell_coordinator(config_.coordinator, protocol::Prepared{m.key, m.epoch});
}

void Member::decline(const protocol::Prepare& m, const std::string& reason) {
  outbox_.log(LogLevel::kWarn, job_text(m.label, protocol::job_id_of(m.key)) + ": " + reason);
  outbox_.tell_coordinator(config_.coordinator, protocol::Failed{m.key, m.epoch, reason});
  // The coordinator forgets these ranks with the epoch that they do not know of; so they end too,
  // and take back what they may have asked for since.
  const auto found = jobs_.find(m.key);
  if (found == jobs_.end() || found->second.state != JobState::kWaiting ||
      found->second.attempt != m.attempt)
    return;
  give_up(found, reason);
}

Result<api::Plan> Member::acceptable_plan(const protocol::Prepare& m) const {
  const auto found = jobs_.find(m.key);
  std::vector<std::uint16_t> local_ranks;
  if (found != jobs_.end()) {
    const Job& job = found->second;
    if (job.state != JobState::kWaiting) return Error{"the job is under way here already"};
    if (job.world_size != m.world_size) return Error{"the number of ranks is another one here"};
    local_ranks = ranks_of(job);
  }
  const std::uint32_t attempt = found == jobs_.end() ? 0 : found->second.attempt;
  if (attempt != m.attempt) return Error{"a rank came or left while the job was starting"};

  Result<api::Plan> plan = decode_plan(m.plan);
  if (!plan.ok()) return plan;
  const auto self =
      std::find_if(plan.value().members.begin(), plan.value().members.end(),
                   [&](const api::Member& member) { return member.node == config_.self; });
  if (self == plan.value().members.end() || plan.value().epoch != m.epoch)
    return Error{"the plan is not for this node and epoch"};
  std::vector<std::uint16_t> planned_ranks = self->ranks;
  std::sort(planned_ranks.begin(), planned_ranks.end());
  if (planned_ranks != local_ranks) return Error{"a rank came or left while the job was starting"};
  for (const api::Member& member : plan.value().members) {
    if (member.node >= config_.node_names.size())
      return Error{"the plan names a node that is not in this node's configuration"};
    for (const std::uint16_t rank : member.ranks)
      if (rank >= m.world_size) return Error{"the plan names a rank that the job does not have"};
  }
  const Status good = config_.check_plan(plan.value());
  if (!good) return good.error();
  return plan;
}

void Member::install(const protocol::Prepare& m, api::Plan plan, Instant now) {
  Job& job = jobs_[m.key];
  if (job.ranks.empty()) job.since = now;
  job.key = m.key;
  job.id = protocol::job_id_of(m.key);
  job.state = JobState::kPrepared;
  job.epoch = m.epoch;
  job.world_size = m.world_size;
  if (job.label.empty()) job.label = m.label;
  job.members = plan.members;
  outbox_.act(InstallJob{job.id, job.epoch, packet_key_of(config_.cluster_key, job.key, job.epoch),
                         job.world_size, job.label, std::move(plan), job.ranks, m.learn_bounds});
}

void Member::on(const protocol::Commit& m) {
  const auto found = find(m.key, m.epoch);
  if (found == jobs_.end() || found->second.state != JobState::kPrepared) return;
  Job& job = found->second;
  job.state = JobState::kReady;
  outbox_.log(LogLevel::kInfo, job_text(job.label, job.id) + ": ready, " +
                                   std::to_string(job.world_size) + " ranks on " +
                                   std::to_string(job.members.size()) + " nodes");
  notify(job, protocol::Ready{job.epoch, static_cast<std::uint32_t>(job.members.size())});
}

void Member::on(const protocol::Failed& m) {
  const auto found = find(m.key, m.epoch);
  if (found != jobs_.end()) end(found, m.reason);
}

void Member::on(const protocol::Finished& m) {
  const auto found = find(m.key, m.epoch);
  if (found == jobs_.end()) return;
  outbox_.log(LogLevel::kInfo, job_text(found->second.label, found->second.id) + ": finished");
  notify(found->second, protocol::JobFailed{"the job has finished"});
  outbox_.act(RemoveJob{found->second.id, m.epoch});
  jobs_.erase(found);
}

void Member::notify(const Job& job, const RankNotice& notice) {
  for (const LocalRank& local : job.ranks) outbox_.act(NotifyRank{local.handle, notice});
}

void Member::tell_waiting(Job& job, protocol::Waiting waiting) {
  job.waiting = std::move(waiting);
  notify(job, job.waiting);
  // A line whenever half of them have come, so that many ranks make few lines.
  const std::uint32_t missing = job.waiting.missing_count;
  if (missing == 0 || missing > job.logged_missing / 2) return;
  job.logged_missing = missing;
  outbox_.log(LogLevel::kInfo, job_text(job.label, job.id) + ": " + job.waiting.reason);
}

void Member::end(Jobs::iterator job, const std::string& reason) {
  outbox_.log(LogLevel::kWarn, job_text(job->second.label, job->second.id) + ": failed: " + reason);
  outbox_.failures.push_back({job->second.id, job->second.label, reason, Instant()});
  notify(job->second, protocol::JobFailed{reason});
  if (job->second.state != JobState::kWaiting)
    outbox_.act(RemoveJob{job->second.id, job->second.epoch});
  jobs_.erase(job);
}

Member::Jobs::iterator Member::find(const JobKey& key, std::uint32_t epoch) {
  const auto found = jobs_.find(key);
  if (found == jobs_.end() || found->second.state == JobState::kWaiting) return jobs_.end();
  return found->second.epoch == epoch ? found : jobs_.end();
}

std::vector<JobView> Member::views() const {
  std::vector<JobView> views;
  for (const auto& [key, job] : jobs_) {
    JobView& view = views.emplace_back();
    view.job_id = job.id;
    view.epoch = job.epoch;
    view.state = job.state;
    view.world_size = job.world_size;
    view.label = job.label;
    if (job.state == JobState::kWaiting) {
      for (const LocalRank& local : job.ranks) view.ranks.push_back({local.rank, config_.self});
      view.missing = job.waiting.missing;
      view.missing_count = job.waiting.missing_count;
      view.reason = job.waiting.reason;
    }
    for (const api::Member& member : job.members)
      for (const std::uint16_t rank : member.ranks) view.ranks.push_back({rank, member.node});
  }
  return views;
}

}  // namespace gradplane::session
