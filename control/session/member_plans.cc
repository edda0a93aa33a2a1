// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How a node gets its part in a plan: the first one of a job, and those that replace it.
#include <algorithm>
#include <utility>

#include "control/session/member.h"
#include "control/session/plan_codec.h"
#include "control/session/settings.h"
#include "control/session/text.h"

namespace gradplane::session {

void Member::on(const protocol::Prepare& m, Instant now) {
  auto found = jobs_.find(m.key);
  const bool is_over = found != jobs_.end() && found->second.state != JobState::kWaiting &&
                       found->second.first_epoch != m.first_epoch && found->second.ranks.empty();
  if (is_over) {
    // The job has no ranks here, and it can only begin anew when its earlier run has ended.
    end(found, "the job has begun anew elsewhere");
    found = jobs_.end();
  }
  const bool known = found != jobs_.end() && found->second.state != JobState::kWaiting &&
                     found->second.first_epoch == m.first_epoch;
  if (known && m.epoch <= found->second.newest_epoch) {
    ignore("prepare", m.epoch);
    return;
  }
  const std::string self = node_text(config_, config_.self);
  const std::string difference = difference_text(
      config_.job_settings, self, m.settings, node_text(config_, outbox_.coordinator()), m.grants);
  if (!difference.empty()) {
    decline(m, difference);
    return;
  }
  warn_of_other_sections(m);
  Result<api::Plan> plan = known ? further_plan(found->second, m) : acceptable_plan(m);
  if (!plan.ok()) {
    decline(m, self + ": " + plan.error().message);
    return;
  }
  if (known) {
    prepare_further(found->second, std::move(plan.value()), m);
    return;
  }
  if (const auto denial = why_no_slot(m.key)) {
    outbox_.count(denial->why);
    decline(m, denial->text);
    return;
  }
  install(m, std::move(plan.value()), now);
  // For a job that runs elsewhere, the engine answers when it is ready, because a committed plan
  // cannot be refused.
  if (m.epoch == m.first_epoch)
    outbox_.tell_coordinator(protocol::Prepared{m.key, m.epoch, false, 0});
}

/// Plans, bounds and quotas are the coordinator's, so a job runs although another file says
/// something else. But after a takeover other values would count.
void Member::warn_of_other_sections(const protocol::Prepare& m) {
  std::string others;
  for (std::size_t s = 0; s < config_.shared_sections.size(); ++s) {
    const auto& [name, digest] = config_.shared_sections[s];
    if (s >= m.shared_sections.size() || m.shared_sections[s] == digest) continue;
    others += (others.empty() ? "" : ", ") + name;
  }
  if (others == other_sections_) return;
  other_sections_ = others;
  if (others.empty()) return;
  outbox_.log(LogLevel::kWarn,
              node_text(config_, outbox_.coordinator()) +
                  ", which coordinates, has other values in " + others + " than " +
                  node_text(config_, config_.self) +
                  "; those of the coordinator count, and it may be another node one day, so make "
                  "the files the same");
}

void Member::decline(const protocol::Prepare& m, const std::string& reason) {
  outbox_.log(LogLevel::kWarn, job_text(m.label, protocol::job_id_of(m.key)) + ": " + reason);
  outbox_.tell_coordinator(protocol::PlanRefused{m.key, m.epoch, reason});
  // The coordinator forgets these ranks together with the plan. So they end here, too, and withdraw
  // a Join that may be under way.
  const auto found = jobs_.find(m.key);
  if (found == jobs_.end() || found->second.state != JobState::kWaiting ||
      found->second.attempt != m.attempt)
    return;
  give_up(found, reason);
}

/// Decodes a plan, and checks that it is valid and has the ranks that are here.
Result<api::Plan> Member::decode(const protocol::Prepare& m,
                                 const std::vector<std::uint16_t>& local_ranks) const {
  Result<api::Plan> plan = decode_plan(m.plan);
  if (!plan.ok()) return plan;
  if (plan.value().epoch != m.epoch) return Error{"the plan is of another epoch"};
  // Ranks are told the number of selections only once, so every plan must have the same.
  if (plan.value().selections.size() != m.settings.selections)
    return Error{"the plan has " + std::to_string(plan.value().selections.size()) +
                 " selections, and its coordinator's file asks for " +
                 std::to_string(m.settings.selections)};
  std::vector<std::uint16_t> planned_ranks;
  for (const api::Member& member : plan.value().members) {
    if (member.node >= config_.node_names.size())
      return Error{"the plan names a node that is not in this node's configuration"};
    for (const std::uint16_t rank : member.ranks)
      if (rank >= m.world_size) return Error{"the plan names a rank that the job does not have"};
    if (member.node == config_.self) planned_ranks = member.ranks;
  }
  std::sort(planned_ranks.begin(), planned_ranks.end());
  // A plan without this node is valid: it takes the ranks here out.
  if (has_part(plan.value()) && planned_ranks != local_ranks)
    return Error{"a rank came or left while the plan was made"};
  const Status good = config_.check_plan(plan.value());
  if (!good) return good.error();
  return plan;
}

bool Member::has_part(const api::Plan& plan) const {
  return std::any_of(plan.members.begin(), plan.members.end(),
                     [&](const api::Member& member) { return member.node == config_.self; });
}

/// The plan of a job that begins on this node, although it may run elsewhere already.
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
  Result<api::Plan> plan = decode(m, local_ranks);
  if (plan.ok() && !has_part(plan.value())) return Error{"the plan is not for this node"};
  return plan;
}

/// A further plan of a job that runs here.
Result<api::Plan> Member::further_plan(const Job& job, const protocol::Prepare& m) const {
  if (job.next)
    return Error{"epoch " + std::to_string(job.next->epoch) + " is being prepared here already"};
  if (job.ending != 0)
    return Error{"the last rounds of epoch " + std::to_string(job.ending) +
                 " have not ended here yet"};
  if (job.world_size != m.world_size) return Error{"the number of ranks is another one here"};
  if (job.grants != m.grants)
    return Error{job.grants ? "the job has grants here, and the plan is for a job without"
                            : "the job has no grants here, and the plan is for a job with them"};
  return decode(m, ranks_of(job));
}

void Member::install(const protocol::Prepare& m, api::Plan plan, Instant now) {
  Job& job = jobs_[m.key];
  if (job.ranks.empty()) job.since = now;
  job.key = m.key;
  job.id = protocol::job_id_of(m.key);
  job.state = JobState::kPrepared;
  job.first_epoch = m.first_epoch;
  job.newest_epoch = m.epoch;
  job.world_size = m.world_size;
  job.grants = m.grants;
  if (job.label.empty()) job.label = m.label;
  job.members = plan.members;
  job.kind = plan.kind;
  job.next = Next{m.epoch, plan.kind, plan.members, true, m.epoch == m.first_epoch, m.plan};
  outbox_.act(InstallJob{job.id, job.first_epoch,
                         packet_key_of(config_.cluster_key, job.key, m.epoch), job.world_size,
                         job.label, std::move(plan), job.ranks, m.learn_bounds, m.grants});
}

void Member::prepare_further(Job& job, api::Plan plan, const protocol::Prepare& m) {
  job.newest_epoch = plan.epoch;
  job.next = Next{plan.epoch, plan.kind, plan.members, has_part(plan), false, m.plan};
  outbox_.act(PreparePlan{job.id, job.first_epoch,
                          packet_key_of(config_.cluster_key, job.key, plan.epoch),
                          std::move(plan)});
}

Member::Jobs::iterator Member::find_preparing(std::uint32_t job_id, std::uint32_t epoch) {
  return std::find_if(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
    const Job& job = entry.second;
    return job.id == job_id && job.next && job.next->epoch == epoch && !job.next->answered;
  });
}

void Member::on_plan_prepared(std::uint32_t job_id, std::uint32_t epoch, std::uint32_t horizon) {
  const auto found = find_preparing(job_id, epoch);
  if (found == jobs_.end()) return;  // aborted in the meantime
  found->second.next->answered = true;
  const bool runs = found->second.state == JobState::kReady;
  outbox_.tell_coordinator(protocol::Prepared{found->first, epoch, runs, runs ? horizon : 0});
}

void Member::on_plan_refused(std::uint32_t job_id, std::uint32_t epoch, const std::string& text) {
  const auto found = find_preparing(job_id, epoch);
  if (found == jobs_.end()) {
    // A refusal after the commit ends the job. A refusal after an abort does not matter.
    const bool is_in_force = std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
      return entry.second.id == job_id && entry.second.epoch == epoch;
    });
    if (is_in_force)
      on_job_error(job_id, "epoch " + std::to_string(epoch) + " is in force, and " + text);
    return;
  }
  found->second.next.reset();
  const std::string reason = node_text(config_, config_.self) + ": " + text;
  outbox_.log(LogLevel::kWarn, job_text(found->second.label, job_id) + ": " + reason);
  outbox_.tell_coordinator(protocol::PlanRefused{found->first, epoch, reason});
}

void Member::on_plan_ended(std::uint32_t job_id, std::uint32_t epoch) {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
    return entry.second.id == job_id && entry.second.ending == epoch;
  });
  if (found == jobs_.end() || epoch == 0) return;
  Job& job = found->second;
  job.ending = 0;
  outbox_.tell_coordinator(protocol::PlanEnded{job.key, epoch});
  if (job.has_part) return;
  notify(job, protocol::JobFailed{"the job goes on without the ranks of " +
                                  node_text(config_, config_.self) + " from round " +
                                  std::to_string(job.activation_round) + " on"});
  job.ranks.clear();
}

void Member::on(const protocol::EndPlan& m) {
  const auto found = jobs_.find(m.key);
  // The plan may have ended here already, but ranks may wait until it has ended everywhere.
  if (found == jobs_.end() || m.epoch == 0 || found->second.epoch_before != m.epoch) {
    ignore("end", m.epoch);
    return;
  }
  found->second.epoch_before = 0;
  outbox_.act(EndOlderPlan{found->second.id, found->second.first_epoch, m.epoch});
}

void Member::on(const protocol::Dismiss& m) {
  const auto found = find(m.key, m.first_epoch);
  if (found == jobs_.end() || found->second.has_part || found->second.ending != 0) {
    ignore("dismiss", m.first_epoch);
    return;
  }
  const Job& job = found->second;
  outbox_.log(LogLevel::kInfo,
              job_text(job.label, job.id) + ": goes on without this node from now on");
  outbox_.act(RemoveJob{job.id, job.first_epoch});
  jobs_.erase(found);
}

void Member::on(const protocol::Commit& m) {
  const auto found = jobs_.find(m.key);
  if (found == jobs_.end() || !found->second.next || found->second.next->epoch != m.epoch ||
      !found->second.next->answered) {
    ignore("commit", m.epoch);
    return;
  }
  Job& job = found->second;
  const std::uint32_t before = std::exchange(job.epoch, m.epoch);
  job.plan_before = std::exchange(job.plan, std::move(job.next->plan));
  job.plan_before_epoch = before;
  job.kind = job.next->kind;
  job.members = std::move(job.next->members);
  job.has_part = job.next->has_part;
  job.next.reset();
  const bool was_ready = std::exchange(job.state, JobState::kReady) == JobState::kReady;
  if (was_ready) job.ending = job.epoch_before = before;
  job.activation_round = m.activation_round;
  if (job.epoch != job.first_epoch)
    outbox_.act(CommitPlan{job.id, job.first_epoch, m.epoch, m.activation_round});
  outbox_.log(LogLevel::kInfo,
              job_text(job.label, job.id) +
                  (was_ready ? ": epoch " + std::to_string(m.epoch) + " from round " +
                                   std::to_string(m.activation_round) + " on, "
                             : ": ready, ") +
                  size_text(job.members, job.world_size));
  if (!was_ready)
    notify(job,
           protocol::Ready{job.first_epoch, static_cast<std::uint32_t>(job.members.size()),
                           m.activation_round, config_.job_settings.selections,
                           config_.job_settings.average_every, config_.job_settings.staleness});
}

void Member::on(const protocol::Abort& m) {
  const auto found = jobs_.find(m.key);
  if (found == jobs_.end() || !found->second.next || found->second.next->epoch != m.epoch ||
      m.epoch == found->second.first_epoch) {
    ignore("abort", m.epoch);
    return;
  }
  Job& job = found->second;
  if (!job.ranks.empty() && job.state == JobState::kPrepared) {
    end(found, m.reason);  // the ranks were to join by this plan
    return;
  }
  outbox_.log(LogLevel::kWarn, job_text(job.label, job.id) + ": epoch " + std::to_string(m.epoch) +
                                   " does not come: " + m.reason);
  if (job.state == JobState::kReady) {
    job.next.reset();
    outbox_.act(AbortPlan{job.id, job.first_epoch, m.epoch});
    return;
  }
  outbox_.act(RemoveJob{job.id, job.first_epoch});
  jobs_.erase(found);
}

void Member::ignore(const char* message, std::uint32_t epoch) {
  outbox_.ignore(node_text(config_, outbox_.coordinator()) + " said " + message + " of epoch " +
                 std::to_string(epoch) + ", which is not expected now");
}

/// Says to people how far a change of the plan is.
std::string Member::change_text(const Job& job) {
  if (job.state == JobState::kReady && job.next)
    return "epoch " + std::to_string(job.next->epoch) +
           (job.next->answered ? " is prepared here" : " is being prepared here");
  if (job.ending == 0 && !job.has_part)
    return "this node has left the job, and answers others until they have ended their rounds";
  if (job.ending == 0) return {};
  return "epoch " + std::to_string(job.epoch) + " is in force from round " +
         std::to_string(job.activation_round) + " on, the rounds before have not ended here";
}

Status Member::replan(AskerHandle asker, const protocol::JobKey& key, const PlanChoice& choice,
                      Instant now) {
  return questions_.ask(asker, key, choice, now);
}

}  // namespace gradplane::session
