// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/member.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "control/session/text.h"

namespace gradplane::session {

using protocol::JobKey;

Member::Member(const SessionConfig& config, Outbox& outbox)
    : config_(config), outbox_(outbox), questions_(config, outbox) {}

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
      node_text(config_, outbox_.coordinator()) + ", which coordinates the jobs, " + why;
  coordinator_trouble_ = reason;
  for (auto& [key, job] : jobs_) {
    if (job.state == JobState::kWaiting)
      tell_waiting(job, {{}, 0, reason});
    else
      outbox_.log(LogLevel::kWarn, job_text(job.label, job.id) + ": goes on as it is; " + reason);
  }
  questions_.on_coordinator_lost(reason +
                                 "; another node takes over, so ask again in some seconds");
}

bool Member::waits_for_word() const {
  return std::any_of(jobs_.begin(), jobs_.end(), [](const auto& entry) {
    const Job& job = entry.second;
    return job.state == JobState::kReady && job.next && job.next->answered;
  });
}

void Member::on_job_error(std::uint32_t job_id, const std::string& text) {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
    return entry.second.id == job_id && entry.second.state != JobState::kWaiting;
  });
  if (found == jobs_.end()) return;
  const Job& job = found->second;
  const std::string reason = node_text(config_, config_.self) + ": " + text;
  if (job.state == JobState::kPrepared && job.next->epoch != job.first_epoch) {
    // The job runs elsewhere, and can go on without this plan.
    outbox_.tell_coordinator(protocol::PlanRefused{job.key, job.next->epoch, reason});
  } else {
    outbox_.tell_coordinator(protocol::Failed{job.key, job.first_epoch, reason});
  }
  end(found, reason);
}

void Member::on_bucket_refused(std::uint32_t job_id, const std::string& text) {
  if (config_.job_settings.staleness > 0)
    return on_job_error(job_id, text + "; training.mode selective-ssp needs every bucket");
  for (const auto& [key, job] : jobs_)
    if (job.id == job_id)
      outbox_.log(LogLevel::kError, job_text(job.label, job_id) + ": " + text + "; it stays exact");
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
    if (job.sends_back && *job.sends_back < job.bound_parts.size()) {
      outbox_.tell_coordinator(job.bound_parts[(*job.sends_back)++]);
      return true;
    }
    if (job.state != JobState::kReady || job.described == job.table_parts.size()) continue;
    outbox_.tell_coordinator(
        protocol::DescribeBucket{key, job.first_epoch, job.table_parts[job.described++]});
    return true;
  }
  return false;
}

void Member::on(const protocol::BucketBounds& m) {
  const auto found = find(m.key, m.first_epoch);
  if (found == jobs_.end()) return;
  Job& job = found->second;
  Result<TablePart> part = decode_table_part(m.part);
  auto table = part.ok() ? job.bounds.add(std::move(part.value()))
                         : Result<std::optional<api::BucketBounds>>(part.error());
  if (!table.ok()) {
    job.open_parts.clear();
    on_bucket_refused(job.id, node_text(config_, outbox_.coordinator()) +
                                  " sent bounds that cannot be: " + table.error().message);
    return;
  }
  job.open_parts.push_back(m);
  if (!table.value()) {
    if (job.bounds.is_open()) return;
    job.open_parts.clear();
    on_bucket_refused(job.id, "there are more tensors than a job may have");
    return;
  }
  std::move(job.open_parts.begin(), job.open_parts.end(), std::back_inserter(job.bound_parts));
  job.open_parts.clear();
  outbox_.act(InstallBounds{job.id, job.first_epoch, std::move(*table.value()), m.learn_budget});
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
  waiting.reason = m.missing.empty()
                       ? "all ranks are here; the plan is being made"
                       : session::waiting_text(config_, m.missing, job.world_size, m.unheard);
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
  // An older Join with the refused ranks may be under way, and the coordinator may accept it. So
  // the last Join that it gets must name only the ranks that are left.
  if (job.ranks.size() < before) send_join(job, ranks_of(job));
  if (job.ranks.empty()) jobs_.erase(found);
}

void Member::on(const protocol::Failed& m) {
  const auto found = find(m.key, m.first_epoch);
  if (found != jobs_.end()) end(found, m.reason);
}

void Member::on(const protocol::Finished& m) {
  const auto found = find(m.key, m.first_epoch);
  if (found == jobs_.end()) return;
  outbox_.log(LogLevel::kInfo, job_text(found->second.label, found->second.id) + ": finished");
  notify(found->second, protocol::JobFailed{"the job has finished"});
  outbox_.act(RemoveJob{found->second.id, m.first_epoch});
  jobs_.erase(found);
}

void Member::notify(const Job& job, const RankNotice& notice) {
  for (const LocalRank& local : job.ranks) outbox_.act(NotifyRank{local.handle, notice});
}

void Member::tell_waiting(Job& job, protocol::Waiting waiting) {
  job.waiting = std::move(waiting);
  notify(job, job.waiting);
  // There is a line whenever half of the missing ranks have come, so that many ranks cause only a
  // few lines.
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
    outbox_.act(RemoveJob{job->second.id, job->second.first_epoch});
  jobs_.erase(job);
}

Member::Jobs::iterator Member::find(const JobKey& key, std::uint32_t first_epoch) {
  const auto found = jobs_.find(key);
  if (found == jobs_.end() || found->second.state == JobState::kWaiting) return jobs_.end();
  return found->second.first_epoch == first_epoch ? found : jobs_.end();
}

void Member::on(const protocol::ReplanAnswer& m) {
  questions_.on_answer(m);
}

std::optional<JobKey> Member::key_of(std::uint32_t job_id) const {
  for (const auto& [key, job] : jobs_)
    if (job.id == job_id) return key;
  return std::nullopt;
}

std::vector<JobView> Member::views() const {
  std::vector<JobView> views;
  for (const auto& [key, job] : jobs_) {
    JobView& view = views.emplace_back();
    view.job_id = job.id;
    view.first_epoch = job.first_epoch;
    view.epoch = job.epoch;
    view.plan_kind = job.kind;
    view.plan_change = change_text(job);
    view.user = job.user;
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
