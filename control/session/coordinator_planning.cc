// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How plans are made: when one is ordered, and what becomes of it when it comes. The planner works
// somewhere else, so the job may have changed by then.
#include <algorithm>
#include <utility>

#include "control/session/coordinator.h"
#include "control/session/grants.h"
#include "control/session/plan_codec.h"
#include "control/session/text.h"

namespace gradplane::session {
namespace {

bool is_same(const api::Plan& a, const std::optional<api::Plan>& b) {
  return b && a.members == b->members && a.trees == b->trees && a.routes == b->routes &&
         a.selections == b->selections;
}

bool follows_network(const PlanOffer& offer) {
  return offer.follows_network || plan_needs_network(offer.planner);
}

}  // namespace

/// Whether a change is under way that is not given up for a new one.
bool Coordinator::is_busy(const Job& job) {
  return job.change || (job.planning && job.planning->reason != PlanReason::kRedraw);
}

/// Orders the first plan when all ranks are here, and again when the ranks have changed.
void Coordinator::start(Jobs::iterator found, Instant now) {
  Job& job = found->second;
  if (job.planning && job.planning->hosts == job.joined) return;
  job.planning.reset();
  if (now < relays_.settled_at()) return;  // tick_planning() will call this again
  if (const Status ordered = order_plan(job, PlanReason::kStart, {}, {}, now); !ordered.ok())
    refuse_all(found, "there is no plan for it: " + ordered.error().message);
}

/// Orders a plan for the ranks that the job has. An Error: there can be no plan, and nothing has
/// changed.
Status Coordinator::order_plan(Job& job, PlanReason reason, const std::optional<PlanChoice>& choice,
                               const std::optional<Question>& question, Instant now) {
  Result<Hosts> hosts = hosts_with(job, choice, now);
  if (!hosts.ok()) return hosts.error();
  MakePlan order{++last_ticket_, job.id, {}};
  PlanInput& input = order.input;
  input.epoch = next_epoch();  // begin_change() sets it again, as another plan may begin first
  input.choice = choice;
  input.in_force = job.in_force;
  input.in_force_for = now - job.alone_since;
  input.label = job.label;
  for (const auto& [node, joined] : hosts.value()) input.members.push_back({node, joined.ranks});
  input.links = reports_.samples(now);
  input.silent = {relays_.silent().begin(), relays_.silent().end()};
  input.redraw = reason == PlanReason::kRedraw;
  job.planning = Planning{order.ticket,        reason, choice, question, std::move(hosts.value()),
                          now + kPlanningLimit};
  job.redraw.on_ask(now, network_version());
  outbox_.act(std::move(order));
  return Nothing{};
}

void Coordinator::on_plan_made(std::uint64_t ticket, Result<PlanOffer> made, Instant now) {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(), [ticket](const auto& entry) {
    return entry.second.planning && entry.second.planning->ticket == ticket;
  });
  if (found == jobs_.end()) return;
  Planning planning = std::move(*found->second.planning);
  found->second.planning.reset();
  take_plan(found, std::move(planning), std::move(made), now);
}

void Coordinator::take_plan(Jobs::iterator found, Planning planning, Result<PlanOffer> made,
                            Instant now) {
  Job& job = found->second;
  const Result<Hosts> hosts = hosts_with(job, planning.choice, now);
  const bool changed = hosts.ok() && hosts.value() != planning.hosts;
  if (changed && made.ok()) {
    // The ranks have changed since the plan was ordered.
    if (planning.reason == PlanReason::kStart && missing_ranks(job).empty()) start(found, now);
    if (planning.reason == PlanReason::kQuestion)
      replan(job, *planning.question, *planning.choice, now);
    if (planning.reason == PlanReason::kJoin) take_in(job, now);
    return;
  }
  if (made.ok()) {
    job.next_follows_network = follows_network(made.value());
    job.change_note = made.value().note;
    job.note_in_force = made.value().note_in_force;
  }
  switch (planning.reason) {
    case PlanReason::kStart:
      return prepare_start(found, std::move(made), std::move(planning.hosts), now);
    case PlanReason::kQuestion:
      return prepare_answer(job, planning, std::move(made), now);
    case PlanReason::kJoin:
      return prepare_join(job, std::move(made), std::move(planning.hosts), now);
    case PlanReason::kRedraw:
      return prepare_redraw(job, std::move(made), std::move(planning.hosts), now);
  }
}

/// Makes this the next plan of the job. An Error: the plan is not possible, and nothing has
/// changed.
Status Coordinator::begin_change(Job& job, api::Plan plan, Hosts hosts, Instant now) {
  plan.epoch = next_epoch();
  for (const Status& good : {config_.check_plan(plan), check_departing(job, plan)})
    if (!good) return good.error();
  for (const api::Member& member : plan.members) {
    if (member.node >= config_.node_names.size())
      return Error{"the planner named node " + std::to_string(member.node) +
                   ", which is not there"};
  }
  Result<std::vector<std::byte>> encoded = encode_plan(plan);
  if (!encoded.ok()) return encoded.error();
  last_epoch_ = plan.epoch;
  job.change_bytes = std::move(encoded.value());
  job.changed = std::move(hosts);
  job.change.emplace(std::move(plan), job.members, now + prepare_timeout(config_));
  job.redraw.on_switch(now, config_.redraw);
  return Nothing{};
}

namespace {

PlanOutlook outlook_of(const PlanOffer& offer, std::optional<Duration> time, std::string decision,
                       Instant now) {
  return {offer.planner, time, now, std::move(decision)};
}

}  // namespace

/// Notes for operators that the plan in force stays, although another one was wanted.
void Coordinator::note_refused(Job& job, const PlanOutlook& wanted, const std::string& reason) {
  if (!job.outlook) return;
  job.outlook->at = wanted.at;
  job.outlook->decision = "the plan in force stays, because the next one (" +
                          std::string(plan_kind_name(wanted.planner)) + "; " + wanted.decision +
                          ") was refused: " + reason;
}

/// Decides for the whole life of a job whether it has grants, when its first plan is known.
void Coordinator::decide_grants(Job& job) {
  const GrantChoice choice = config_.job_settings.grants;
  job.grants = choice == GrantChoice::kTrue;
  if (choice != GrantChoice::kAuto) return;
  GrantCase known{.senders = most_senders(job.change->plan()),
                  .has_one_tree = job.change->plan().trees.size() == 1,
                  .needs_soundings = *job.next_follows_network,
                  .exclusion = config_.grant_exclusion};
  for (const auto& [node, joined] : job.changed)
    if (known.exclusion.empty() && job.grantless.contains(node))
      known.exclusion = "the file of " + node_text(config_, node) + " excludes them";
  for (const auto& [key, other] : jobs_) {
    if (!other.grants) continue;
    known.other_sources += most_senders(other.change ? other.change->plan() : *other.in_force);
  }
  const std::string why_not = why_no_grants(known);
  job.grants = why_not.empty();
  if (known.senders < kFewestSendersOfGrants) return;
  outbox_.log(LogLevel::kInfo, job_text(job.label, job.id) + ": " + std::to_string(known.senders) +
                                   " nodes send to one, " +
                                   (job.grants ? "so receivers grant their links"
                                               : "but receivers do not grant: " + why_not));
}

void Coordinator::prepare_start(Jobs::iterator found, Result<PlanOffer> made, Hosts hosts,
                                Instant now) {
  Job& job = found->second;
  Status begun = made.ok() ? begin_change(job, std::move(made.value().plan), std::move(hosts), now)
                           : Status(made.error());
  if (!begun.ok()) {
    refuse_all(found, "there is no plan for it: " + begun.error().message);
    return;
  }
  job.state = JobState::kPrepared;
  job.first_epoch = job.change->epoch();
  decide_grants(job);
  PlanOffer& offer = made.value();
  job.next_outlook = outlook_of(offer, offer.time, "the job began with it", now);
  outbox_.log(LogLevel::kInfo, job_text(job.label, job.id) + ": all " +
                                   std::to_string(job.world_size) + " ranks are here, preparing " +
                                   std::to_string(job.change->members().size()) + " nodes");
  send_prepare(job);
}

void Coordinator::prepare_answer(Job& job, const Planning& planning, Result<PlanOffer> made,
                                 Instant now) {
  const Question& question = *planning.question;
  const PlanChoice choice{planning.choice->kind, planning.choice->roots};
  PlanOutlook wanted{choice.kind, {}, now, "an operator asked for it"};
  const auto stays = [&](const std::string& why) {
    tell_answer(job, question, false, "the plan in force stays: " + why);
  };
  if (!made.ok()) {
    note_refused(job, wanted, made.error().message);
    stays(made.error().message);
    return;
  }
  PlanOffer& offer = made.value();
  if (is_same(offer.plan, job.in_force)) {
    job.choice = choice;
    job.redraw.on_planned(follows_network(offer));
    job.outlook = outlook_of(offer, offer.time, "an operator asked, and it was the best", now);
    stays(std::string(plan_kind_name(choice.kind)) + " makes no other one");
    return;
  }
  const Status begun = begin_change(job, std::move(offer.plan), planning.hosts, now);
  if (!begun.ok()) {
    note_refused(job, wanted, begun.error().message);
    stays(begun.error().message);
    return;
  }
  job.next_outlook = outlook_of(offer, offer.time, std::move(wanted.decision), now);
  outbox_.log(LogLevel::kInfo, job_text(job.label, job.id) + ": preparing epoch " +
                                   std::to_string(job.change->epoch()) + " on " +
                                   std::to_string(job.change->nodes().size()) + " nodes: " +
                                   plan_text(config_, job.change->plan(), job.change_note));
  job.question = question;
  job.next_choice = choice;
  send_prepare(job);
}

void Coordinator::prepare_join(Job& job, Result<PlanOffer> made, Hosts hosts, Instant now) {
  Status begun = made.ok() ? begin_change(job, std::move(made.value().plan), std::move(hosts), now)
                           : Status(made.error());
  if (!begun.ok()) {
    refuse_all_joining(job, "there is no plan with these ranks: " + begun.error().message, now);
    return;
  }
  PlanOffer& offer = made.value();
  job.next_outlook = outlook_of(offer, offer.time, "ranks have joined", now);
  outbox_.log(LogLevel::kInfo, job_text(job.label, job.id) + ": preparing epoch " +
                                   std::to_string(job.change->epoch()) + " with more ranks: " +
                                   plan_text(config_, job.change->plan(), job.change_note));
  send_prepare(job);
}

void Coordinator::prepare_redraw(Job& job, Result<PlanOffer> made, Hosts hosts, Instant now) {
  const std::string name = job_text(job.label, job.id);
  if (!made.ok()) {
    outbox_.log(LogLevel::kWarn, name +
                                     ": the plan in force stays, because there is none over the "
                                     "network as measured: " +
                                     made.error().message);
    job.redraw.on_failure(config_.redraw);
    return;
  }
  PlanOffer& offer = made.value();
  const bool is_new = !is_same(offer.plan, job.in_force);
  const bool worth = offer.time && is_worth_switch(offer.time_in_force, *offer.time,
                                                   offer.switch_price, config_.redraw);
  if (!is_new || !worth || offer.is_early) {
    const char* why = offer.is_early ? "too little has been measured since it began"
                      : is_new       ? "no other one is worth a switch"
                                     : "it is the best one";
    job.outlook = outlook_of(offer, offer.time_in_force, why, now);
    job.redraw.on_planned(follows_network(offer));
    if (offer.is_early) return job.redraw.on_early(now, config_.redraw);
    return job.redraw.on_kept(now, config_.redraw);
  }
  if (const Status begun = begin_change(job, std::move(offer.plan), std::move(hosts), now);
      !begun.ok()) {
    outbox_.log(LogLevel::kWarn, name + ": the plan in force stays: " + begun.error().message);
    job.redraw.on_failure(config_.redraw);
    return;
  }
  job.next_outlook = outlook_of(offer, offer.time, "the network has changed", now);
  outbox_.log(LogLevel::kInfo, name + ": the network has changed, preparing epoch " +
                                   std::to_string(job.change->epoch()) + " on " +
                                   std::to_string(job.change->nodes().size()) + " nodes: " +
                                   plan_text(config_, job.change->plan(), job.change_note));
  send_prepare(job);
}

/// Drops the plan that is being made, because it is not wanted any more.
void Coordinator::drop_planning(Job& job, const std::string& reason) {
  if (!job.planning) return;
  const Planning planning = std::move(*job.planning);
  job.planning.reset();
  if (planning.question) tell_answer(job, *planning.question, false, reason);
}

void Coordinator::on(api::NodeId from, const protocol::ReportLinks& m, Instant now) {
  outbox_.bad_link_samples += reports_.add(from, m, config_.node_names.size(), now);
}

/// When another plan may be ordered because the network has changed.
Instant Coordinator::redraw_due(const Job& job) const {
  const bool idle = job.state == JobState::kReady && !job.change && !job.planning && !job.queued &&
                    job.joining.empty() && job.left.empty();
  if (!idle) return Instant::never();
  return std::max({job.redraw.due(network_version(), config_.redraw), relays_.settled_at(),
                   reports_.settled_at()});
}

/// When tick_planning() has something to do.
Instant Coordinator::planning_deadline(const Job& job) const {
  if (job.planning) return job.planning->until;
  if (job.state == JobState::kWaiting)
    return missing_ranks(job).empty() ? relays_.settled_at() : Instant::never();
  return redraw_due(job);
}

void Coordinator::tick_planning(Jobs::iterator found, Instant now) {
  Job& job = found->second;
  if (job.planning) {
    Planning late = std::move(*job.planning);
    job.planning.reset();
    take_plan(
        found, std::move(late),
        Error{"the planner has not made one within " +
              std::to_string(kPlanningLimit.count_ns() / Duration::seconds(1).count_ns()) + " s"},
        now);
  } else if (job.state == JobState::kWaiting) {
    start(found, now);
  } else if (const Status ordered = order_plan(job, PlanReason::kRedraw, job.choice, {}, now);
             !ordered.ok()) {
    job.redraw.on_failure(config_.redraw);
  }
}

TopologyView Coordinator::topology(Instant now) const {
  TopologyView view;
  view.links = reports_.samples(now);
  view.silent = {relays_.silent().begin(), relays_.silent().end()};
  for (const auto& [key, job] : jobs_) {
    if (!job.in_force) continue;
    view.plans.push_back({job.id, job.label, *job.in_force, job.outlook,
                          job.outlook ? now - job.outlook->at : Duration{},
                          job.choice ? job.choice->roots : std::vector<api::NodeId>{},
                          now - job.alone_since});
  }
  return view;
}

}  // namespace gradplane::session
