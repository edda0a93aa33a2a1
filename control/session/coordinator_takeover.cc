// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How a node that begins to coordinate learns the jobs from their members.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "control/session/coordinator.h"
#include "control/session/plan_codec.h"
#include "control/session/text.h"

namespace gradplane::session {
namespace {

const char* const kLaterRun = "a later run of the same job goes on";

template <typename M>
constexpr bool kIsAnswer =
    std::is_same_v<M, protocol::Report> || std::is_same_v<M, protocol::PlanIs>;

}  // namespace

void Coordinator::resign() {
  jobs_.clear();
  takeovers_.clear();
}

/// Holds messages about a job that is being taken over until the job is known.
bool Coordinator::hold(api::NodeId from, const protocol::NodeMessage& message, Instant now) {
  if (takeovers_.empty()) return false;
  const protocol::JobKey key = std::visit([](const auto& m) { return m.key; }, message);
  const auto first = takeovers_.lower_bound({key, 0});
  if (first == takeovers_.end() || first->first.first != key) return false;
  if (std::visit([]<typename M>(const M&) { return kIsAnswer<M>; }, message)) return false;
  if (const auto* failed = std::get_if<protocol::Failed>(&message)) {
    const TakeoverName name{key, failed->first_epoch};
    if (takeovers_.contains(name)) settle(name, failed->reason, now);
    return true;
  }
  if (const auto* refused = std::get_if<protocol::PlanRefused>(&message)) {
    const TakeoverName name = first->first;
    first->second.on_refused(from, refused->epoch);
    advance(name, now);
    return true;
  }
  if (!first->second.hold(from, message)) {
    const TakeoverName name = first->first;
    settle(name,
           "nodes have sent more of it than the " + std::to_string(kMaxHeldBytes >> 20) +
               " MiB that are kept while nodes are asked; the last was " + node_text(config_, from),
           now);
  }
  return true;
}

void Coordinator::on(api::NodeId from, const protocol::Report& m, Instant now) {
  const auto job = jobs_.find(m.key);
  if (job != jobs_.end() && job->second.state != JobState::kWaiting) {
    answer_late(job->second, from, m);
    return;
  }
  if (std::max({m.newest_epoch, m.epoch, m.next_epoch}) > kMaxReportedEpoch) {
    ignore(from, "report", m.newest_epoch);
    return;
  }
  const TakeoverName name{m.key, m.first_epoch};
  if (!takeovers_.contains(name)) {
    if (!m.has_job()) return;
    if (!has_slot_for_takeover()) {
      const Denial denial = no_slot(kMaxJobs, node_text(config_, config_.self) + " coordinates");
      outbox_.count(denial.why);
      outbox_.tell_member(from, protocol::Failed{m.key, m.first_epoch, denial.text});
      return;
    }
    begin_takeover(from, m, now);
  }
  takeovers_.at(name).on_report(from, m);
  advance(name, now);
}

/// Jobs that run take precedence over jobs that wait, so there may be too many jobs for a moment.
bool Coordinator::has_slot_for_takeover() const {
  const auto taken = std::count_if(jobs_.begin(), jobs_.end(), [](const auto& entry) {
    return entry.second.state != JobState::kWaiting;
  });
  return static_cast<std::size_t>(taken) + takeovers_.size() < kMaxJobs;
}

/// Answers the Report of a node that was not needed when the job was taken over, or that has an
/// earlier run of the job.
void Coordinator::answer_late(const Job& job, api::NodeId from, const protocol::Report& m) {
  const bool same = m.first_epoch == job.first_epoch;
  if (!m.has_job()) return;
  const bool has_part = same && nodes_of(job).contains(from);
  const bool is_wanted = m.next_epoch == 0 || m.next_epoch == job.epoch ||
                         (job.change && m.next_epoch == job.change->epoch());
  if (same && !is_wanted && (has_part || m.epoch != 0))
    outbox_.tell_member(from, protocol::Abort{job.key, m.next_epoch, kChangeLost});
  if (has_part) return;
  if (same && m.epoch != 0 && !m.has_part && !m.ending)
    outbox_.tell_member(from, protocol::Dismiss{job.key, job.first_epoch});
  else
    outbox_.tell_member(from, protocol::Failed{job.key, m.first_epoch, kWithoutNode});
}

void Coordinator::begin_takeover(api::NodeId from, const protocol::Report& m, Instant now) {
  if (jobs_.empty() && takeovers_.empty()) relays_.watch(now);
  const TakeoverName name{m.key, m.first_epoch};
  Takeover& takeover =
      takeovers_.try_emplace(name, m.key, m.first_epoch, now + takeover_limit(config_))
          .first->second;
  outbox_.log(LogLevel::kInfo, job_text(m.label, protocol::job_id_of(m.key)) + ": " +
                                   node_text(config_, from) +
                                   " has a part in it; asking the others what they have");
  // Ranks that have come before this report are on nodes that did not know of the plan, or they
  // want to join.
  const auto waiting = jobs_.find(m.key);
  if (waiting == jobs_.end()) return;
  const Job& job = waiting->second;
  for (const auto& [node, joined] : job.joined)
    (void)takeover.hold(
        node, protocol::Join{job.key, joined.attempt, job.user, job.world_size, joined.ranks,
                             job.label, !job.grantless.contains(node)});
  jobs_.erase(waiting);
}

void Coordinator::on(api::NodeId from, const protocol::PlanIs& m, Instant now) {
  const TakeoverName name{m.key, m.first_epoch};
  const auto takeover = takeovers_.find(name);
  if (takeover == takeovers_.end() || !takeover->second.awaits_plan(m.epoch, from)) return;
  Result<api::Plan> plan = decode_plan(m.plan);
  const bool sane =
      plan.ok() && plan.value().epoch == m.epoch && config_.check_plan(plan.value()).ok() &&
      std::all_of(
          plan.value().members.begin(), plan.value().members.end(),
          [this](const api::Member& member) { return member.node < config_.node_names.size(); });
  if (!sane) {
    settle(name, node_text(config_, from) + " has a plan that cannot be", now);
    return;
  }
  takeover->second.on_plan(m.epoch, std::move(plan.value()));
  advance(name, now);
}

void Coordinator::advance(const TakeoverName& name, Instant now) {
  const auto takeover = takeovers_.find(name);
  takeover->second.ask(outbox_);
  if (takeover->second.is_complete()) settle(name, {}, now);
}

/// Of several runs with one key only the latest goes on.
std::string Coordinator::why_not_beside_other_run(const TakeoverName& name) const {
  const auto other = jobs_.find(name.first);
  const bool is_earlier = other != jobs_.end() && other->second.state != JobState::kWaiting &&
                          other->second.first_epoch > name.second;
  return is_earlier ? kLaterRun : std::string();
}

/// Ends the run with this key that a later run replaces.
void Coordinator::end_earlier_run(const protocol::JobKey& key) {
  const auto other = jobs_.find(key);
  if (other != jobs_.end() && other->second.state != JobState::kWaiting) fail(other, kLaterRun);
}

/// Ends a takeover. `failed` says why the job cannot go on; empty: the reports decide.
void Coordinator::settle(const TakeoverName& name, const std::string& failed, Instant now) {
  auto taken = takeovers_.extract(name);
  if (taken.empty()) return;
  Takeover takeover = std::move(taken.mapped());
  std::string why = failed;
  if (why.empty()) why = why_not_beside_other_run(name);
  if (why.empty())
    why = takeover.committed_epoch() == 0 ? resume(takeover, now) : restore(takeover, now);
  if (why.empty()) {
    const auto earlier = takeovers_.lower_bound({name.first, 0});
    if (earlier != takeovers_.end() && earlier->first < name)
      settle(TakeoverName(earlier->first), kLaterRun, now);
  }
  if (!why.empty()) {
    outbox_.log(LogLevel::kWarn,
                job_text("", protocol::job_id_of(name.first)) + " is ended on all nodes: " + why);
    for (const auto& [node, report] : takeover.reports())
      if (report.has_job())
        outbox_.tell_member(node, protocol::Failed{name.first, name.second, why});
  }
  for (const Takeover::Held& held : takeover.take_held()) on_message(held.from, held.message, now);
}

/// `is_back`: the node can be asked again.
void Coordinator::lose_in_takeovers(api::NodeId node, const std::string& why, bool is_back,
                                    Instant now) {
  std::vector<TakeoverName> names;
  for (const auto& [name, takeover] : takeovers_)
    if (takeover.nodes().contains(node)) names.push_back(name);
  for (const TakeoverName& name : names) {
    const auto takeover = takeovers_.find(name);
    if (takeover == takeovers_.end()) continue;  // a message that another one held has ended it
    takeover->second.on_lost(node, why, is_back);
    advance(name, now);
  }
}

void Coordinator::tick_takeovers(Instant now) {
  std::vector<TakeoverName> late;
  for (const auto& [name, takeover] : takeovers_)
    if (now >= takeover.until()) late.push_back(name);
  for (const TakeoverName& name : late) {
    const auto takeover = takeovers_.find(name);
    if (takeover == takeovers_.end()) continue;
    const std::set<api::NodeId> silent = takeover->second.silent();
    settle(name,
           nodes_text(config_, {silent.begin(), silent.end()}) +
               " did not say what it has of the job when its coordinator was lost",
           now);
  }
}

}  // namespace gradplane::session
