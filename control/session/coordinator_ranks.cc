// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How the ranks of whole nodes leave a job that runs, and join it.
#include <algorithm>
#include <utility>

#include "control/session/coordinator.h"
#include "control/session/text.h"

namespace gradplane::session {
namespace {

/// How long the coordinator waits for more ranks of a node, so that one plan brings all of them:
/// they attach one after the other.
constexpr Duration kMoreMayCome = Duration::ms(500);

const char* const kNotElastic =
    "the coordinator's file does not let ranks leave or join a job that runs (ranks.elastic)";

}  // namespace

/// The nodes with ranks in the next plan: the present ones, without those that an operator takes
/// out, and with those that have come.
Result<Coordinator::Hosts> Coordinator::hosts_with(const Job& job,
                                                   const std::optional<PlanChoice>& choice,
                                                   Instant now) const {
  Hosts hosts = job.joined;
  for (const api::NodeId node : choice ? choice->without : std::vector<api::NodeId>{}) {
    if (!config_.elastic) return Error{kNotElastic};
    if (hosts.erase(node) == 0) return Error{node_text(config_, node) + " has no ranks of the job"};
  }
  for (const auto& [node, joining] : job.joining)
    if (now >= joining.settled_at) hosts[node] = joining.joined;
  // At least one must stay: ranks that join get the parameters from ranks that stay, and rounds
  // wait for one of these (I6 in docs/protocol.md).
  const bool some_stay = std::any_of(hosts.begin(), hosts.end(), [&job](const auto& entry) {
    return job.joined.contains(entry.first);
  });
  if (!some_stay) return Error{"none of the ranks of now would be left"};
  return hosts;
}

/// Checks that no node sums whose own ranks are taken out: it would wait for these ranks.
Status Coordinator::check_departing(const Job& job, const api::Plan& plan) const {
  for (const api::Member& member : plan.members) {
    if (member.ranks.empty() && job.joined.contains(member.node))
      return Error{node_text(config_, member.node) +
                   " would sum for others while its own ranks are taken out; name other roots"};
  }
  return Nothing{};
}

void Coordinator::on_late_join(Jobs::iterator found, api::NodeId from, const protocol::Join& m,
                               Instant now) {
  Job& job = found->second;
  // The next plan would bring the ranks that this node had before, which have changed.
  if (is_on_its_way(job, from)) {
    abort(job, "a rank came or left on " + node_text(config_, from));
    return;
  }
  const auto known = job.joining.find(from);
  if (known != job.joining.end() && known->second.joined == Joined{m.attempt, m.ranks}) return;
  job.joining.erase(from);
  if (m.ranks.empty()) return;
  if (const std::string reason = why_not_late(job, from, m); !reason.empty()) {
    refuse(from, m, m.ranks, {Refusal::kNotFitting, reason});
    return;
  }
  job.joining[from] = {{m.attempt, m.ranks}, now + kMoreMayCome, now + config_.quotas.wait};
  outbox_.tell_member(from, protocol::WaitingFor{job.key, m.attempt, 0, {}, {}});
  outbox_.log(LogLevel::kInfo, job_text(job.label, job.id) + ": " + node_text(config_, from) +
                                   " brings " + ranks_text(m.ranks) + " to join it");
}

/// Nodes that may have ranks of which the coordinator cannot know.
std::vector<api::NodeId> Coordinator::unheard() const {
  std::vector<api::NodeId> unheard;
  for (std::size_t i = 0; i < config_.node_names.size(); ++i) {
    const auto node = static_cast<api::NodeId>(i);
    if (node != config_.self && !in_contact_.contains(node)) unheard.push_back(node);
  }
  return unheard;
}

std::string Coordinator::why_not_late(const Job& job, api::NodeId from,
                                      const protocol::Join& m) const {
  const std::string again = "; attach again when it has ended";
  if (!config_.elastic || job.state != JobState::kReady)
    return "the job has begun with all its ranks (" + std::to_string(m.world_size) + ")" + again;
  if (m.world_size != job.world_size)
    return "the job has " + std::to_string(job.world_size) + " ranks, and not " +
           std::to_string(m.world_size);
  if (!job.left.empty()) return "the ranks of the job are leaving" + again;
  if (nodes_of(job).contains(from))
    return node_text(config_, from) + " has a part in the job under another plan" + again;
  std::set<std::uint16_t> taken;
  for (const auto& [node, joined] : job.joined)
    taken.insert(joined.ranks.begin(), joined.ranks.end());
  for (const auto& [node, joining] : job.joining)
    taken.insert(joining.joined.ranks.begin(), joining.joined.ranks.end());
  for (const std::uint16_t rank : m.ranks)
    if (taken.contains(rank))
      return "rank " + std::to_string(rank) + " is in the job already" + again;
  return {};
}

/// Orders a plan with the ranks that have come, as soon as no other change is under way.
void Coordinator::take_in(Job& job, Instant now) {
  std::vector<api::NodeId> late;
  for (const auto& [node, joining] : job.joining)
    if (now >= joining.until && !is_on_its_way(job, node)) late.push_back(node);
  for (const api::NodeId node : late)
    refuse_joining(job, node,
                   {Refusal::kWaitedTooLong, waited_text(config_.quotas.wait, change_text(job))});
  const bool any = std::any_of(job.joining.begin(), job.joining.end(),
                               [now](const auto& entry) { return now >= entry.second.settled_at; });
  if (is_busy(job) || !any) return;
  if (!job.left.empty()) {
    refuse_all_joining(job, "the ranks of the job are leaving", Instant::never());
    return;
  }
  if (const Status ordered = order_plan(job, PlanReason::kJoin, job.choice, {}, now); !ordered.ok())
    refuse_all_joining(job, "there is no plan with these ranks: " + ordered.error().message, now);
}

/// Whether the plan that is being prepared brings the ranks of this node.
bool Coordinator::is_on_its_way(const Job& job, api::NodeId node) {
  return job.change && job.joining.contains(node) && job.changed.contains(node);
}

void Coordinator::refuse_joining(Job& job, api::NodeId node, const Denial& denial) {
  const auto joining = job.joining.find(node);
  const Joined& joined = joining->second.joined;
  outbox_.count(denial.why);
  outbox_.log(LogLevel::kWarn, job_text(job.label, job.id) + ": " + ranks_text(joined.ranks) +
                                   " on " + node_text(config_, node) +
                                   " cannot join it: " + denial.text);
  outbox_.tell_member(node, protocol::Refused{job.key, joined.attempt, joined.ranks, denial.text});
  job.joining.erase(joining);
}

/// Refuses the ranks of all nodes that were settled at `settled_by`.
void Coordinator::refuse_all_joining(Job& job, const std::string& reason, Instant settled_by) {
  std::vector<api::NodeId> nodes;
  for (const auto& [node, joining] : job.joining)
    if (joining.settled_at <= settled_by) nodes.push_back(node);
  for (const api::NodeId node : nodes) refuse_joining(job, node, {Refusal::kNotFitting, reason});
}

/// Handles Leave of a rank that was to join: only the plan that would bring it is given up.
bool Coordinator::on_leave_before_joining(Job& job, api::NodeId from, const protocol::Leave& m) {
  if (!is_on_its_way(job, from)) return false;
  abort(job, "rank " + std::to_string(m.rank) + " on " + node_text(config_, from) +
                 " has left before it joined");
  return true;
}

/// Forgets the ranks of a node that a plan has taken out, when their last round is over. Returns
/// whether this has ended the job, because all other ranks have left.
bool Coordinator::has_departed(Jobs::iterator found, api::NodeId node) {
  Job& job = found->second;
  const auto departed = job.departing.find(node);
  if (departed == job.departing.end()) return false;
  for (const std::uint16_t rank : departed->second.ranks) job.left.erase(rank);
  job.departing.erase(departed);
  if (job.left.empty()) job.all_left_by = Instant::never();
  if (job.left.empty() || job.left.size() != rank_count(job)) return false;
  finish(found);
  return true;
}

Instant Coordinator::joining_due(const Job& job) {
  Instant due = Instant::never();
  for (const auto& [node, joining] : job.joining) {
    if (is_on_its_way(job, node)) continue;
    due = std::min(due, is_busy(job) ? joining.until : joining.settled_at);
  }
  return due;
}

/// All ranks that take part in rounds that are not over, in order.
std::vector<std::uint16_t> Coordinator::ranks_of(const Job& job) {
  std::vector<std::uint16_t> ranks;
  for (const Hosts* hosts : {&job.joined, &job.departing})
    for (const auto& [node, joined] : *hosts)
      ranks.insert(ranks.end(), joined.ranks.begin(), joined.ranks.end());
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::size_t Coordinator::rank_count(const Job& job) {
  return ranks_of(job).size();
}

}  // namespace gradplane::session
