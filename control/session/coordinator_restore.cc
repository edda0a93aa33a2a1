// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// What a node that begins to coordinate makes of a job whose members have all reported.
#include <algorithm>
#include <utility>

#include "control/session/coordinator.h"
#include "control/session/plan_codec.h"
#include "control/session/text.h"

namespace gradplane::session {
namespace {

/// Why a job of `world_size` ranks cannot have a plan that names `ranks`, in order; empty: it can.
/// The plan comes from a peer, so it is not trusted.
std::string why_not_ranks(const std::vector<std::uint16_t>& ranks, std::uint32_t world_size) {
  if (ranks.empty()) return "the plan that its members have names no ranks";
  if (ranks.back() < world_size) return {};
  return "the plan that its members have names rank " + std::to_string(ranks.back()) +
         ", and the job has only " + std::to_string(world_size) + " ranks";
}

}  // namespace

/// The job as its members have reported it, without its plans.
Coordinator::Job Coordinator::inherited(const Takeover& from, const api::Plan& plan,
                                        Instant now) const {
  Job job;
  job.key = from.key();
  job.id = protocol::job_id_of(job.key);
  job.since = job.update_at = now;
  job.first_epoch = from.first_epoch();
  job.user = from.user();
  for (const auto& [node, report] : from.reports()) {
    if (!report.has_job()) continue;
    job.world_size = report.world_size;
    job.label = report.label;
    job.grants = report.grants;
  }
  for (const api::Member& member : plan.members) {
    if (member.ranks.empty()) continue;
    const protocol::Report* report = from.job_at(member.node);
    const protocol::Join* join = from.waiting_at(member.node);
    const std::uint32_t attempt = report != nullptr ? report->attempt
                                  : join != nullptr ? join->attempt
                                                    : 0;
    job.joined[member.node] = {attempt, member.ranks};
  }
  return job;
}

/// Takes over a job that has begun nowhere: its first plan is prepared where it was not. Returns
/// why that is not possible; empty: it is.
std::string Coordinator::resume(const Takeover& from, Instant now) {
  const api::Plan* plan = from.plan(from.first_epoch());
  if (plan == nullptr) return "no node is left on which it runs";
  Job job = inherited(from, *plan, now);
  if (std::string why = why_not_ranks(ranks_of(job), job.world_size); !why.empty()) return why;
  job.state = JobState::kPrepared;
  job.redraw.on_switch(now, config_.redraw);
  job.changed = job.joined;
  job.change.emplace(*plan, job.members, now + prepare_timeout(config_));
  Result<std::vector<std::byte>> bytes = encode_plan(*plan);
  if (!bytes.ok()) return bytes.error().message;
  job.change_bytes = std::move(bytes.value());
  for (const api::Member& member : plan->members) {
    if (const protocol::Report* report = from.job_at(member.node)) {
      if (report->next_epoch == from.first_epoch()) job.change->on_prepared(member.node, {});
      continue;
    }
    const protocol::Join* join = from.waiting_at(member.node);
    const bool lost = !from.reports().contains(member.node);
    if (lost || (!member.ranks.empty() && (join == nullptr || join->ranks != member.ranks)))
      return node_text(config_, member.node) + " " + from.why_not_at(member.node);
  }
  end_earlier_run(job.key);
  Job& kept = jobs_.insert_or_assign(job.key, std::move(job)).first->second;
  count_on_from(from.newest_epoch());
  outbox_.log(LogLevel::kInfo, job_text(kept.label, kept.id) +
                                   ": taken over while it was beginning, with epoch " +
                                   std::to_string(kept.first_epoch));
  send_prepare(kept);
  if (kept.change->may_commit()) commit(kept, now);
  return {};
}

/// Takes over a job that runs. Returns why it cannot go on; empty: it can.
std::string Coordinator::restore(const Takeover& from, Instant now) {
  const std::uint32_t epoch = from.committed_epoch();
  const api::Plan& plan = *from.plan(epoch);
  for (const api::Member& member : plan.members) {
    const protocol::Report* report = from.job_at(member.node);
    if (report == nullptr)
      return node_text(config_, member.node) + " " + from.why_not_at(member.node);
    if (report->epoch == epoch) continue;
    if (report->next_epoch != epoch) return node_text(config_, member.node) + " has another plan";
  }
  Job job = inherited(from, plan, now);
  if (std::string why = why_not_ranks(ranks_of(job), job.world_size); !why.empty()) return why;
  job.state = JobState::kReady;
  job.epoch = epoch;
  job.kind = plan.kind;
  job.members = plan.members;
  job.in_force = plan;
  for (const auto& [node, report] : from.reports())
    if (report.epoch == epoch) job.in_force->activation_round = report.activation_round;
  job.plan = plan_text(config_, plan, {});
  // The first redraw comes when members have had time to report links.
  job.redraw.on_switch(now, config_.redraw);
  job.alone_since = now;
  if (const Status good = inherit_change(job, from, now); !good) return good.error().message;
  inherit_tables(job, from);
  bring_up(job, from);
  count_on_from(from.newest_epoch());
  end_earlier_run(job.key);
  Job& kept = jobs_.insert_or_assign(job.key, std::move(job)).first->second;
  outbox_.log(LogLevel::kInfo, job_text(kept.label, kept.id) + ": taken over under epoch " +
                                   std::to_string(epoch) + ": " + kept.plan);
  if (!kept.change) return {};
  tell_ended(kept);
  if (kept.change->done()) kept.change.reset();
  return {};
}

void Coordinator::count_on_from(std::uint32_t epoch) {
  const auto step = 1 + (static_cast<std::uint32_t>(config_.incarnation >> 16) & kLargestEpochStep);
  if (last_epoch_ <= epoch) last_epoch_ = epoch + step;
}

/// Takes over the change to the plan in force: rounds of the plan before may still be open, or some
/// node may not know that they have ended.
Status Coordinator::inherit_change(Job& job, const Takeover& from, Instant now) const {
  std::set<api::NodeId> awaited;
  for (const auto& [node, report] : from.reports()) {
    const bool is_behind = report.epoch != 0 && report.next_epoch == job.epoch;
    if (is_behind) job.epoch_before = report.epoch;
    if (report.epoch == job.epoch && report.epoch_before != 0)
      job.epoch_before = report.epoch_before;
    if (is_behind || report.ending) awaited.insert(node);
  }
  if (job.epoch_before == 0) return Nothing{};
  const api::Plan* before = from.plan(job.epoch_before);
  if (before == nullptr) return Error{"nobody knows the plan before"};
  for (const api::Member& member : before->members) {
    const protocol::Report* report = from.job_at(member.node);
    if (report == nullptr && !awaited.empty())
      return Error{node_text(config_, member.node) + " " + from.why_not_at(member.node)};
    if (!member.ranks.empty() && awaited.contains(member.node) && !job.joined.contains(member.node))
      job.departing[member.node] = {report->attempt, member.ranks};
  }
  job.change.emplace(*job.in_force, before->members, now);
  job.change->resume(awaited);
  return Nothing{};
}

/// Tells each node what becomes of the plans that it has reported.
void Coordinator::bring_up(const Job& job, const Takeover& from) {
  const bool all_ended = !job.change || job.change->done();
  for (const auto& [node, report] : from.reports()) {
    if (!report.has_job()) continue;
    if (report.next_epoch == job.epoch)
      outbox_.tell_member(node,
                          protocol::Commit{job.key, job.epoch, job.in_force->activation_round});
    else if (report.epoch != 0 && report.epoch != job.epoch)
      outbox_.tell_member(node, protocol::Failed{job.key, job.first_epoch, kWithoutNode});
    else if (report.epoch == job.epoch && !report.has_part && all_ended)
      outbox_.tell_member(node, protocol::Dismiss{job.key, job.first_epoch});
    if (report.next_epoch > job.epoch)
      outbox_.tell_member(node, protocol::Abort{job.key, report.next_epoch, kChangeLost});
  }
}

/// All members have a beginning of the same sequence of table parts. The longest one goes to all.
void Coordinator::inherit_tables(Job& job, const Takeover& from) {
  std::map<api::NodeId, std::size_t> sent;
  api::NodeId longest = api::kNoNode;
  for (const auto& [node, report] : from.reports()) {
    if (!report.has_part) continue;
    sent[node] = report.table_parts;
    if (longest == api::kNoNode || sent[node] > sent[longest]) longest = node;
  }
  const std::size_t parts = longest == api::kNoNode ? 0 : sent[longest];
  job.tables.expect(parts, std::move(sent));
  std::set<api::NodeId> members;
  for (const api::Member& member : job.members) members.insert(member.node);
  job.tables.set_members(members);
  if (parts > 0) outbox_.tell_member(longest, protocol::AskTables{job.key, job.first_epoch});
}

void Coordinator::on(api::NodeId from, const protocol::BucketBounds& m, Instant) {
  const auto found = find(m.key, m.first_epoch);
  if (found == jobs_.end()) return;
  if (!found->second.tables.restore(m.part, m.learn_budget))
    outbox_.log(LogLevel::kWarn, job_text(found->second.label, found->second.id) + ": " +
                                     node_text(config_, from) + " sent bounds that were not asked");
}

}  // namespace gradplane::session
