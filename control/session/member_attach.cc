// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How ranks come and go, and how a job that waits loses its slot.
#include <algorithm>
#include <utility>

#include "control/session/member.h"
#include "control/session/text.h"

namespace gradplane::session {

using protocol::JobKey;

std::vector<std::uint16_t> Member::ranks_of(const Job& job) {
  std::vector<std::uint16_t> sorted;
  for (const LocalRank& local : job.ranks) sorted.push_back(local.rank);
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

std::string Member::waiting_text(const Job& job) const {
  if (!job.waiting.reason.empty()) return job.waiting.reason;
  return "waiting for " + node_text(config_, outbox_.coordinator()) +
         ", which coordinates the jobs";
}

Status Member::attach(const NewRank& rank, Instant now) {
  std::optional<Denial> denial = why_not(rank);
  auto found = jobs_.find(rank.key);
  if (!denial && found != jobs_.end()) denial = why_not_in(found->second, rank);
  if (!denial && found == jobs_.end()) denial = why_no_wait(rank);
  if (denial) {
    outbox_.count(denial->why);
    return Error{denial->text};
  }
  users_[rank.handle] = rank.user;
  if (found == jobs_.end()) {
    Job job;
    job.key = rank.key;
    job.id = protocol::job_id_of(rank.key);
    job.user = rank.user;
    job.since = now;
    job.attempt = ++last_attempt_;
    job.world_size = rank.world_size;
    job.label = rank.label;
    found = jobs_.emplace(rank.key, std::move(job)).first;
  }
  Job& job = found->second;
  job.ranks.push_back({rank.handle, static_cast<std::uint16_t>(rank.rank)});
  outbox_.log(LogLevel::kInfo, job_text(job.label, job.id) + ": rank " + std::to_string(rank.rank) +
                                   " of " + std::to_string(rank.world_size) + " has attached");
  send_join(job, ranks_of(job));
  if (!coordinator_trouble_.empty()) job.waiting = {{}, 0, coordinator_trouble_};
  if (!job.waiting.reason.empty()) outbox_.act(NotifyRank{rank.handle, job.waiting});
  return Nothing{};
}

/// Why a rank is refused whatever its job is.
std::optional<Denial> Member::why_not(const NewRank& rank) const {
  if (rank.world_size == 0 || rank.world_size > kMaxRanks || rank.rank >= rank.world_size)
    return Denial{Refusal::kNotFitting, "rank " + std::to_string(rank.rank) + " of " +
                                            std::to_string(rank.world_size) +
                                            " cannot be: a job has 1 to " +
                                            std::to_string(kMaxRanks) + " ranks, numbered from 0"};
  for (const auto& [key, job] : jobs_)
    for (const LocalRank& local : job.ranks)
      if (local.handle == rank.handle)
        return Denial{Refusal::kNotFitting, "this connection has attached rank " +
                                                std::to_string(local.rank) +
                                                " already; open another one"};
  const std::string who = node_text(config_, config_.self) + " holds memory for ";
  if (users_.size() - users_.count(rank.handle) >= kMaxRanksOfNode)
    return Denial{Refusal::kNoSlot, who + std::to_string(kMaxRanksOfNode) +
                                        " ranks already, which is the most; wait until some end"};
  const auto held = std::count_if(users_.begin(), users_.end(), [&](const auto& entry) {
    return entry.second == rank.user && entry.first != rank.handle;
  });
  if (rank.user == kRootUser || held < config_.quotas.ranks) return std::nullopt;
  return Denial{Refusal::kUserRanks,
                who + std::to_string(held) + " ranks of user " + std::to_string(rank.user) +
                    " already, which is the most for one user (quotas.ranks); end the "
                    "processes that have it, also of ranks that have left, or ask the operator to "
                    "allow more"};
}

std::optional<Denial> Member::why_not_in(const Job& job, const NewRank& rank) const {
  const auto denial = [](std::string text) {
    return Denial{Refusal::kNotFitting, std::move(text)};
  };
  const std::string who = job_text(job.label, job.id);
  const std::string which = "rank " + std::to_string(rank.rank);
  if (job.state != JobState::kWaiting)
    return denial(who + " is under way; " + which + " can attach again when it has ended");
  if (job.user != rank.user)
    return denial(who + " is of user " + std::to_string(job.user) + " on " +
                  node_text(config_, config_.self) + ", and " + which + " of user " +
                  std::to_string(rank.user) + "; start all ranks on a node as one user");
  if (job.world_size != rank.world_size)
    return denial(who + " has " + std::to_string(job.world_size) + " ranks by what rank " +
                  std::to_string(job.ranks.front().rank) + " says; " + which + " says " +
                  std::to_string(rank.world_size));
  for (const LocalRank& local : job.ranks)
    if (local.rank == rank.rank)
      return denial(which + " of " + who + " is attached already on " +
                    node_text(config_, config_.self));
  if (job.ranks.size() >= kMaxLocalRanks)
    return denial(who + " has " + std::to_string(kMaxLocalRanks) +
                  " ranks on this node already, which is the most");
  return std::nullopt;
}

std::string Member::same_number(const JobKey& key) const {
  for (const auto& [other_key, job] : jobs_)
    if (job.id == protocol::job_id_of(key))
      return "the key of this job gives the same number as that of " + job_text(job.label, job.id) +
             "; start again with another key";
  return {};
}

/// Why a new job may not wait here. A node does not know what users hold elsewhere, so it displaces
/// no job; the coordinator chooses which gives way.
std::optional<Denial> Member::why_no_wait(const NewRank& rank) const {
  if (const std::string why = same_number(rank.key); !why.empty())
    return Denial{Refusal::kNotFitting, why};
  const std::string who = node_text(config_, config_.self) + " serves";
  if (auto denial = over_quota(slots_of(jobs_), rank.user, config_.quotas, who)) return denial;
  if (jobs_.size() < kMaxJobsOfNode) return std::nullopt;
  return no_slot(jobs_.size(), who);
}

/// Why a job cannot be installed. Jobs that wait take no slot here.
std::optional<Denial> Member::why_no_slot(const JobKey& key) const {
  if (!jobs_.contains(key)) {
    if (const std::string why = same_number(key); !why.empty())
      return Denial{Refusal::kNotFitting, why};
  }
  const auto installed = std::count_if(jobs_.begin(), jobs_.end(), [](const auto& entry) {
    return entry.second.state != JobState::kWaiting;
  });
  if (static_cast<std::size_t>(installed) < kMaxJobs) return std::nullopt;
  return no_slot(kMaxJobs, node_text(config_, config_.self) + " serves");
}

void Member::detach(RankHandle handle, bool clean) {
  for (auto it = jobs_.begin(); it != jobs_.end(); ++it) {
    Job& job = it->second;
    const auto local = std::find_if(job.ranks.begin(), job.ranks.end(),
                                    [&](const LocalRank& r) { return r.handle == handle; });
    if (local == job.ranks.end()) continue;
    const std::uint16_t rank = local->rank;
    outbox_.log(clean ? LogLevel::kInfo : LogLevel::kWarn,
                job_text(job.label, job.id) + ": rank " + std::to_string(rank) +
                    (clean ? " has left" : " is gone without a word"));
    job.ranks.erase(local);
    if (job.state != JobState::kWaiting) {
      job.gone.push_back({rank, clean});
      outbox_.tell_coordinator(protocol::Leave{job.key, job.first_epoch, rank, clean});
      return;
    }
    send_join(job, ranks_of(job));
    if (job.ranks.empty()) jobs_.erase(it);
    return;
  }
}

/// When this node ends the wait of a job. The coordinator does that, and names who is missing; this
/// node only does it while the coordinator cannot be reached.
Instant Member::wait_ends(const Job& job) const {
  if (job.state != JobState::kWaiting || coordinator_trouble_.empty()) return Instant::never();
  return job.since + config_.quotas.wait;
}

void Member::tick(Instant now) {
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    const auto current = it++;
    if (now < wait_ends(current->second)) continue;
    outbox_.count(Refusal::kWaitedTooLong);
    give_up(current, waited_text(config_.quotas.wait, waiting_text(current->second)));
  }
  questions_.tick(now);
}

Instant Member::next_deadline() const {
  Instant deadline = questions_.next_deadline();
  for (const auto& [key, job] : jobs_) deadline = std::min(deadline, wait_ends(job));
  return deadline;
}

void Member::send_join(const Job& job, std::vector<std::uint16_t> ranks) {
  outbox_.tell_coordinator(protocol::Join{job.key, job.attempt, job.user, job.world_size,
                                          std::move(ranks), job.label,
                                          config_.grant_exclusion.empty()});
}

/// Ends a job that waits, and withdraws its ranks at the coordinator.
void Member::give_up(Jobs::iterator job, const std::string& reason) {
  send_join(job->second, {});
  end(job, reason);
}

}  // namespace gradplane::session
