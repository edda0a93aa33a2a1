// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How a plan comes into force: the first one of a job, and those that replace it while it runs.
#include <algorithm>
#include <iterator>
#include <utility>

#include "control/session/coordinator.h"
#include "control/session/text.h"

namespace gradplane::session {

using protocol::JobKey;

namespace {

std::vector<api::NodeId> list_of(const std::set<api::NodeId>& nodes) {
  return {nodes.begin(), nodes.end()};
}

}  // namespace

void Coordinator::send_prepare(Job& job) {
  std::vector<std::uint16_t> digests;
  for (const auto& [name, digest] : config_.shared_sections) digests.push_back(digest);
  for (const api::NodeId node : job.change->awaited()) {
    // The attempt names ranks that wait. Ranks that run go by the epoch.
    const auto joined = job.changed.find(node);
    const bool waits = job.change->begins_job() || job.joining.contains(node);
    const std::uint32_t attempt = waits && joined != job.changed.end() ? joined->second.attempt : 0;
    outbox_.tell_member(
        node, protocol::Prepare{job.key, attempt, job.first_epoch, job.change->epoch(),
                                job.world_size, config_.job_settings, job.label, job.change_bytes,
                                config_.learn_bounds, job.grants, digests});
  }
  job.change_bytes.clear();
}

Coordinator::Jobs::iterator Coordinator::find_changing(const JobKey& key, std::uint32_t epoch) {
  const auto found = jobs_.find(key);
  if (found == jobs_.end() || !found->second.change) return jobs_.end();
  return found->second.change->epoch() == epoch ? found : jobs_.end();
}

void Coordinator::ignore(api::NodeId from, const char* message, std::uint32_t epoch) {
  outbox_.ignore(node_text(config_, from) + " said " + message + " of epoch " +
                 std::to_string(epoch) + ", which is not expected now");
}

void Coordinator::on(api::NodeId from, const protocol::Prepared& m, Instant now) {
  const auto found = find_changing(m.key, m.epoch);
  const auto horizon = m.has_horizon ? std::optional(m.horizon) : std::nullopt;
  if (found == jobs_.end() || !found->second.change->on_prepared(from, horizon)) {
    ignore(from, "prepared", m.epoch);
    return;
  }
  if (found->second.change->may_commit()) commit(found->second, now);
}

void Coordinator::commit(Job& job, Instant now) {
  PlanChange& change = *job.change;
  change.commit();
  const std::string before =
      job.in_force ? plan_text(config_, *job.in_force, job.note_in_force) : std::string();
  job.plan = plan_text(config_, change.plan(), job.change_note);
  job.kind = change.plan().kind;
  job.in_force = change.plan();
  job.epoch_before = std::exchange(job.epoch, change.epoch());
  job.members = change.plan().members;
  if (job.next_choice) job.choice = std::exchange(job.next_choice, std::nullopt);
  if (job.next_follows_network) job.redraw.on_planned(*job.next_follows_network);
  if (job.next_outlook) job.outlook = std::exchange(job.next_outlook, std::nullopt);
  job.departing = std::exchange(job.joined, std::move(job.changed));
  for (const auto& [node, joined] : job.joined) {
    job.departing.erase(node);
    job.joining.erase(node);
  }
  job.tables.set_members(change.members());
  for (const api::NodeId node : change.nodes())
    outbox_.tell_member(node, protocol::Commit{job.key, job.epoch, change.activation_round()});
  if (change.begins_job()) {
    job.state = JobState::kReady;
  } else {
    const std::string text = job.plan + "; before: " + before;
    outbox_.log(LogLevel::kInfo, job_text(job.label, job.id) + ": epoch " +
                                     std::to_string(job.epoch) + " from round " +
                                     std::to_string(change.activation_round()) + " on: " + text);
    answer(job, true, text);
  }
  job.redraw.on_commit();
  job.alone_since = now;
  if (change.done()) job.change.reset();
}

/// Gives the next plan up; the plan in force stays. Only for a job that runs.
void Coordinator::abort(Job& job, const std::string& reason) {
  outbox_.log(LogLevel::kWarn, job_text(job.label, job.id) + " goes on under epoch " +
                                   std::to_string(job.epoch) + ": " + reason);
  for (const api::NodeId node : job.change->nodes())
    outbox_.tell_member(node, protocol::Abort{job.key, job.change->epoch(), reason});
  job.change.reset();
  job.redraw.on_failure(config_.redraw);
  job.next_choice.reset();
  if (job.next_outlook) note_refused(job, *std::exchange(job.next_outlook, std::nullopt), reason);
  // The nodes of ranks that were to join forget the job when they get Abort.
  for (const auto& [node, joined] : std::exchange(job.changed, {})) job.joining.erase(node);
  answer(job, false, "the plan in force stays: " + reason);
}

void Coordinator::on(api::NodeId from, const protocol::PlanRefused& m, Instant) {
  auto found = find_changing(m.key, m.epoch);
  if (found == jobs_.end() || !found->second.change->nodes().contains(from)) {
    ignore(from, "refused", m.epoch);
    return;
  }
  Job& job = found->second;
  if (job.change->begins_job() || job.change->committed())
    fail(found, m.reason);  // a refusal after the commit comes too late for an abort
  else
    abort(job, m.reason);
}

void Coordinator::on(api::NodeId from, const protocol::PlanEnded& m, Instant now) {
  const auto found = jobs_.find(m.key);
  const bool awaited = found != jobs_.end() && found->second.change &&
                       found->second.epoch_before == m.epoch &&
                       found->second.change->on_ended(from);
  if (!awaited) {
    ignore(from, "ended", m.epoch);
    return;
  }
  Job& job = found->second;
  tell_ended(job);
  if (!has_departed(found, from)) close_change(job, now);
}

/// Tells the nodes that cannot find it out that the plan before has ended at all ranks.
void Coordinator::tell_ended(Job& job) {
  if (!job.change->take_ended_with_ranks()) return;
  std::set<api::NodeId> who = job.change->awaited();
  if (job.change->takes_ranks_out())
    std::copy_if(job.change->members().begin(), job.change->members().end(),
                 std::inserter(who, who.end()),
                 [&job](api::NodeId node) { return job.change->had_part(node); });
  for (const api::NodeId node : who)
    outbox_.tell_member(node, protocol::EndPlan{job.key, job.epoch_before});
}

void Coordinator::close_change(Job& job, Instant now) {
  if (!job.change->done()) return;
  for (const api::NodeId node : job.change->leaving())
    outbox_.tell_member(node, protocol::Dismiss{job.key, job.first_epoch});
  job.change.reset();
  job.alone_since = now;
  outbox_.log(LogLevel::kDebug, job_text(job.label, job.id) + ": only epoch " +
                                    std::to_string(job.epoch) + " is left");
  if (!job.queued) return;
  const Queued queued = std::move(*job.queued);
  job.queued.reset();
  if (job.left.empty())
    replan(job, queued.question, queued.choice, now);
  else
    tell_answer(job, queued.question, false, "its ranks are leaving");
}

void Coordinator::on(api::NodeId from, const protocol::Replan& m, Instant now) {
  const Question question{from, m.ticket};
  const auto found = jobs_.find(m.key);
  if (found == jobs_.end() || found->second.state != JobState::kReady) {
    outbox_.tell_member(from, protocol::ReplanAnswer{m.key, m.ticket, false, 0, 0,
                                                     "the job does not run: it has no plan yet, or "
                                                     "has ended"});
    return;
  }
  Job& job = found->second;
  const PlanChoice choice{m.kind, m.roots, m.without};
  if (!job.left.empty()) {
    tell_answer(job, question, false, "its ranks are leaving");
  } else if (job.planning && job.planning->question) {
    tell_answer(
        job, question, false,
        "a plan is being made that somebody else has asked for; ask again when that is over");
  } else if (!job.change) {
    replan(job, question, choice, now);
  } else if (job.change->committed() && !job.queued) {
    // The question waits, because the change may only wait for the last rounds of the plan before.
    job.queued = Queued{question, choice, now + kReplanWait};
  } else {
    tell_answer(job, question, false, change_text(job) + "; ask again when that is over");
  }
}

void Coordinator::replan(Job& job, const Question& question, const PlanChoice& choice,
                         Instant now) {
  const Status ordered = order_plan(job, PlanReason::kQuestion, choice, question, now);
  if (!ordered.ok())
    tell_answer(job, question, false, "the plan in force stays: " + ordered.error().message);
}

void Coordinator::tell_answer(const Job& job, const Question& question, bool committed,
                              const std::string& text) {
  const std::uint32_t round = committed ? job.change->activation_round() : 0;
  outbox_.tell_member(question.node, protocol::ReplanAnswer{job.key, question.ticket, committed,
                                                            job.epoch, round, text});
}

/// Answers the operator who has asked for the next plan.
void Coordinator::answer(Job& job, bool committed, const std::string& text) {
  if (job.question) tell_answer(job, *job.question, committed, text);
  job.question.reset();
}

/// Answers all operators who wait for a plan of a job that is over.
void Coordinator::answer_all(Job& job, const std::string& text) {
  answer(job, false, text);
  drop_planning(job, text);
  if (job.queued) tell_answer(job, job.queued->question, false, text);
  job.queued.reset();
}

void Coordinator::tick_plans(Jobs::iterator found, Instant now) {
  Job& job = found->second;
  if (job.queued && now >= job.queued->until) {
    tell_answer(job, job.queued->question, false,
                change_text(job) + "; ask again when the training has come that far");
    job.queued.reset();
  }
  if (!job.change || now < job.change->answer_by()) return;
  const std::string silent = nodes_text(config_, list_of(job.change->awaited()));
  const bool one = job.change->awaited().size() == 1;
  const std::string reason = silent + (one ? " does" : " do") + " not answer the plan";
  if (job.change->begins_job())
    fail(found, reason);
  else
    abort(job, reason);
}

Instant Coordinator::plans_deadline(const Job& job) {
  const Instant queued = job.queued ? job.queued->until : Instant::never();
  return job.change ? std::min(queued, job.change->answer_by()) : queued;
}

/// Says to people how far the next plan is.
std::string Coordinator::change_text(const Job& job) const {
  if (!job.change) return is_busy(job) ? "another plan is being made" : "";
  const std::string epoch = "epoch " + std::to_string(job.change->epoch());
  const std::string awaited = nodes_text(config_, list_of(job.change->awaited()));
  if (!job.change->committed()) return epoch + " is being prepared, waiting for " + awaited;
  return epoch + " is in force from round " + std::to_string(job.change->activation_round()) +
         " on, waiting for the rounds before to end on " + awaited;
}

/// All nodes with a part in the job, under the plan in force or the next one.
std::set<api::NodeId> Coordinator::nodes_of(const Job& job) {
  std::set<api::NodeId> nodes;
  for (const api::Member& member : job.members) nodes.insert(member.node);
  if (job.change) nodes.insert(job.change->nodes().begin(), job.change->nodes().end());
  return nodes;
}

void Coordinator::lose_node(Jobs::iterator found, api::NodeId node, const std::string& reason) {
  Job& job = found->second;
  if (!nodes_of(job).contains(node)) return;
  const auto member = std::find_if(job.members.begin(), job.members.end(),
                                   [node](const api::Member& m) { return m.node == node; });
  const bool has_part = member != job.members.end();
  const bool has_left = has_part && !member->ranks.empty() &&
                        std::all_of(member->ranks.begin(), member->ranks.end(),
                                    [&job](std::uint16_t rank) { return job.left.contains(rank); });
  // Its ranks are done, and the others have until all_left_by to leave, too.
  if (has_left) return;
  const bool only_to_come = job.change && !job.change->begins_job() && !has_part;
  // A lost node without a part in the plan in force ends only the plan that would bring it.
  if (only_to_come && !job.change->committed())
    abort(job, reason);
  else
    fail(found, reason, node);
}

}  // namespace gradplane::session
