// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/coordinator.h"

#include <algorithm>
#include <utility>

#include "control/session/text.h"

namespace gradplane::session {

using protocol::JobKey;

namespace {

/// The shortest time between two updates of who is missing, so that a thousand ranks that attach at
/// once cause only a few messages.
constexpr Duration kUpdateInterval = Duration::ms(100);

}  // namespace

Coordinator::Coordinator(const SessionConfig& config, Outbox& outbox)
    : config_(config),
      outbox_(outbox),
      relays_(config.relays, config.self),
      // Epochs begin at a random number, because nobody knows which epochs this node has used
      // before a restart. The top bit is 0, to leave room for counting.
      last_epoch_(static_cast<std::uint32_t>(config.incarnation ^ (config.incarnation >> 32)) &
                  0x7fffffff) {}

bool Coordinator::on_message(api::NodeId from, const protocol::NodeMessage& message, Instant now) {
  if (hold(from, message, now)) return true;
  return std::visit(
      [&](const auto& m) {
        constexpr bool kForCoordinators = requires {
          on(from, m, now);
        };
        if constexpr (kForCoordinators) on(from, m, now);
        return kForCoordinators;
      },
      message);
}

void Coordinator::on(api::NodeId from, const protocol::Join& m, Instant now) {
  auto found = jobs_.find(m.key);
  if (found != jobs_.end() && found->second.state != JobState::kWaiting) {
    const auto recorded = found->second.joined.find(from);
    if (recorded == found->second.joined.end()) {
      on_late_join(found, from, m, now);
      return;
    }
    if (recorded->second == Joined{m.attempt, m.ranks}) return;
    fail(found,
         "a rank on " + node_text(config_, from) + " came or left while the job was starting");
    found = jobs_.end();
  }
  if (found == jobs_.end()) {
    if (m.ranks.empty()) return;
    if (const std::optional<Denial> denial = make_room(m)) {
      refuse(from, m, m.ranks, *denial);
      return;
    }
    Job job;
    job.key = m.key;
    job.id = protocol::job_id_of(m.key);
    job.user = m.user;
    job.since = now;
    job.world_size = m.world_size;
    job.label = m.label;
    job.update_at = now;
    found = jobs_.emplace(m.key, std::move(job)).first;
    if (jobs_.size() == 1 && takeovers_.empty()) relays_.watch(now);
  }
  Job& job = found->second;
  collect(job, from, m, now);
  if (job.joined.empty()) {
    jobs_.erase(found);
  } else if (missing_ranks(job).empty()) {
    start(found, now);
  }
}

/// Makes room for the job that this message opens. A job that waits may lose its slot.
std::optional<Denial> Coordinator::make_room(const protocol::Join& m) {
  for (const auto& [other_key, job] : jobs_)
    if (job.id == protocol::job_id_of(m.key))
      return Denial{Refusal::kNotFitting, "the key of this job gives the same number as that of " +
                                              job_text(job.label, job.id) +
                                              "; start again with another key"};
  const Newcomer newcomer{.user = m.user, .complete = m.ranks.size() == m.world_size};
  const std::string who = node_text(config_, config_.self) + " coordinates";
  std::vector<Slot> slots = slots_of(jobs_);
  for (const auto& [name, takeover] : takeovers_)
    slots.push_back({name.first, takeover.user(), false, Instant()});
  const Admission admission = admit(slots, newcomer, config_.quotas, who);
  if (admission.gives_way) {
    const auto job = jobs_.find(*admission.gives_way);
    outbox_.count(Refusal::kGaveWay);
    refuse_all(job, gave_way_text(who, newcomer, waiting_text(job->second)));
  }
  return admission.denial;
}

std::string Coordinator::waiting_text(const Job& job) const {
  return session::waiting_text(config_, missing_ranks(job), job.world_size, unheard());
}

Instant Coordinator::wait_ends(const Job& job) const {
  return job.state == JobState::kWaiting ? job.since + config_.quotas.wait : Instant::never();
}

void Coordinator::collect(Job& job, api::NodeId from, const protocol::Join& m, Instant now) {
  std::vector<std::uint16_t> good;
  std::vector<std::uint16_t> taken;
  std::string reason;
  if (m.world_size != job.world_size) {
    const auto& [first_node, first] = *job.joined.begin();
    taken = m.ranks;
    reason = "the ranks do not agree on their number: " + ranks_text(first.ranks) + " on " +
             node_text(config_, first_node) + " say " + std::to_string(job.world_size) + ", " +
             ranks_text(m.ranks) + " on " + node_text(config_, from) + " say " +
             std::to_string(m.world_size);
  } else {
    for (const std::uint16_t rank : m.ranks) {
      const auto other = std::find_if(job.joined.begin(), job.joined.end(), [&](const auto& entry) {
        const auto& ranks = entry.second.ranks;
        return entry.first != from && std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
      });
      (other == job.joined.end() ? good : taken).push_back(rank);
      if (other != job.joined.end())
        reason = "rank " + std::to_string(rank) + " is there twice: on " +
                 node_text(config_, other->first) + " and on " + node_text(config_, from);
    }
  }
  if (!taken.empty()) refuse(from, m, taken, {Refusal::kNotFitting, reason});
  if (m.may_grant)
    job.grantless.erase(from);
  else
    job.grantless.insert(from);
  if (good.empty())
    job.joined.erase(from);
  else
    job.joined[from] = {m.attempt, std::move(good)};
  job.update_due = true;
  if (now >= job.update_at) send_updates(job, now);
}

void Coordinator::refuse(api::NodeId node, const protocol::Join& m,
                         const std::vector<std::uint16_t>& ranks, const Denial& denial) {
  outbox_.count(denial.why);
  outbox_.log(LogLevel::kWarn, job_text(m.label, protocol::job_id_of(m.key)) + ": " +
                                   ranks_text(ranks) + " on " + node_text(config_, node) +
                                   " refused: " + denial.text);
  outbox_.tell_member(node, protocol::Refused{m.key, m.attempt, ranks, denial.text});
}

void Coordinator::refuse_all(Jobs::iterator job, const std::string& reason) {
  outbox_.log(LogLevel::kWarn, job_text(job->second.label, job->second.id) + ": " + reason);
  for (const auto& [node, joined] : job->second.joined)
    outbox_.tell_member(node, protocol::Refused{job->first, joined.attempt, joined.ranks, reason});
  jobs_.erase(job);
}

void Coordinator::on(api::NodeId from, const protocol::Leave& m, Instant now) {
  const auto found = find(m.key, m.first_epoch);
  if (found == jobs_.end()) return;
  Job& job = found->second;
  if (on_leave_before_joining(job, from, m)) return;
  // A rank that a plan takes out may leave earlier: training may end before the activation.
  const Hosts& hosts = job.departing.contains(from) ? job.departing : job.joined;
  const auto joined = hosts.find(from);
  if (joined == hosts.end()) return;
  const auto& ranks = joined->second.ranks;
  if (std::find(ranks.begin(), ranks.end(), m.rank) == ranks.end()) return;

  const std::string who = "rank " + std::to_string(m.rank) + " on " + node_text(config_, from);
  if (!m.clean) {
    fail(found, who + " died");
  } else if (job.state != JobState::kReady) {
    fail(found, who + " left while the job was starting");
  } else {
    if (job.change && !job.change->committed()) abort(job, who + " has left");
    drop_planning(job, who + " has left");
    job.left.insert(m.rank);
    if (job.all_left_by == Instant::never()) job.all_left_by = now + config_.suspect_after;
    if (job.left.size() == rank_count(job)) finish(found);
  }
}

void Coordinator::finish(Jobs::iterator found) {
  Job& job = found->second;
  refuse_all_joining(job, "the job has finished", Instant::never());
  answer_all(job, "the job has finished");
  for (const api::NodeId node : nodes_of(job))
    outbox_.tell_member(node, protocol::Finished{job.key, job.first_epoch});
  jobs_.erase(found);
}

void Coordinator::on(api::NodeId, const protocol::Failed& m, Instant) {
  const auto found = find(m.key, m.first_epoch);
  if (found != jobs_.end()) fail(found, m.reason);
}

void Coordinator::on(api::NodeId from, const protocol::DescribeBucket& m, Instant now) {
  const auto found = find(m.key, m.first_epoch);
  if (found == jobs_.end() || found->second.state != JobState::kReady) return;
  Job& job = found->second;
  const auto joined = job.joined.find(from);
  if (joined == job.joined.end()) return;
  const auto& ranks = joined->second.ranks;
  if (std::find(ranks.begin(), ranks.end(), 0) == ranks.end()) return;
  const Status taken = job.tables.add(m.part, now);
  if (taken.ok()) return;
  const std::string text =
      node_text(config_, from) + " described a bucket that cannot be: " + taken.error().message;
  // Under bounded staleness exchanges of this bucket would wait for its table for ever.
  if (config_.job_settings.staleness > 0) return fail(found, text);
  outbox_.log(LogLevel::kWarn,
              job_text(job.label, job.id) + ": " + text + "; the bucket stays exact");
}

void Coordinator::resolve_bounds(Job& job) {
  const LogLevel level = job.tables.resolved_before() ? LogLevel::kDebug : LogLevel::kInfo;
  const BoundsTexts texts = job.tables.resolve(config_.resolve_bounds);
  const std::string about = job_text(job.label, job.id) + ": bounds: ";
  if (!texts.summary.empty()) outbox_.log(level, about + texts.summary);
  if (!texts.warning.empty()) outbox_.log(LogLevel::kWarn, about + texts.warning);
}

bool Coordinator::send_table_parts(const std::function<bool(api::NodeId)>& has_room) {
  bool sent = false;
  for (auto& [key, job] : jobs_) {
    const std::set<api::NodeId> behind = job.tables.behind();
    for (const api::NodeId node : behind) {
      if (!has_room(node)) continue;
      outbox_.tell_member(node,
                          protocol::BucketBounds{key, job.first_epoch, job.tables.learn_budget(),
                                                 job.tables.take_part_for(node)});
      sent = true;
    }
  }
  return sent;
}

void Coordinator::on_node_lost(api::NodeId node, const std::string& why, bool is_back,
                               Instant now) {
  relays_.on_lost(node);
  if (!is_back) in_contact_.erase(node);
  lose_in_takeovers(node, why, is_back, now);
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    const auto current = it++;
    Job& job = current->second;
    if (job.state != JobState::kWaiting) {
      job.joining.erase(node);
      lose_node(current, node, node_text(config_, node) + " " + why);
      continue;
    }
    if (job.joined.erase(node) == 0) continue;
    job.update_due = true;
    if (job.joined.empty()) jobs_.erase(current);
  }
}

void Coordinator::tick(Instant now) {
  tick_takeovers(now);
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    const auto current = it++;
    Job& job = current->second;
    if (job.update_due && now >= job.update_at) send_updates(job, now);
    if (now >= job.tables.due()) resolve_bounds(job);
    if (now >= wait_ends(job)) {
      outbox_.count(Refusal::kWaitedTooLong);
      refuse_all(current, waited_text(config_.quotas.wait, waiting_text(job)));
    } else if (now >= plans_deadline(job)) {
      tick_plans(current, now);
    } else if (now >= planning_deadline(job)) {
      tick_planning(current, now);
    } else if (now >= joining_due(job)) {
      take_in(job, now);
    } else if (now >= job.all_left_by) {
      std::vector<std::uint16_t> here = ranks_of(job);
      std::erase_if(here, [&job](std::uint16_t rank) { return job.left.contains(rank); });
      const std::vector<std::uint16_t> left(job.left.begin(), job.left.end());
      fail(current, ranks_text(left) + " left; still here: " + ranks_text(here));
    }
  }
}

Instant Coordinator::next_deadline() const {
  Instant deadline = Instant::never();
  for (const auto& [name, takeover] : takeovers_) deadline = std::min(deadline, takeover.until());
  for (const auto& [key, job] : jobs_) {
    if (job.update_due) deadline = std::min(deadline, job.update_at);
    deadline = std::min({deadline, wait_ends(job), plans_deadline(job), joining_due(job),
                         planning_deadline(job), job.all_left_by, job.tables.due()});
  }
  return deadline;
}

void Coordinator::send_updates(Job& job, Instant now) {
  job.update_due = false;
  job.update_at = now + kUpdateInterval;
  if (job.state != JobState::kWaiting) return;
  const std::vector<std::uint16_t> missing = missing_ranks(job);
  if (missing.empty()) return;
  const auto count = static_cast<std::uint32_t>(missing.size());
  const std::vector<api::NodeId> silent = unheard();
  for (const auto& [node, joined] : job.joined)
    outbox_.tell_member(node,
                        protocol::WaitingFor{job.key, joined.attempt, count, missing, silent});
}

void Coordinator::fail(Jobs::iterator job, const std::string& reason, api::NodeId not_to) {
  outbox_.log(LogLevel::kWarn,
              job_text(job->second.label, job->second.id) + " is ended on all nodes: " + reason);
  for (const api::NodeId node : nodes_of(job->second))
    if (node != not_to)
      outbox_.tell_member(node, protocol::Failed{job->first, job->second.first_epoch, reason});
  refuse_all_joining(job->second, reason, Instant::never());
  answer_all(job->second, "the job is ended: " + reason);
  jobs_.erase(job);
}

std::vector<std::uint16_t> Coordinator::missing_ranks(const Job& job) const {
  std::vector<bool> here(job.world_size);
  for (const auto& [node, joined] : job.joined)
    for (const std::uint16_t rank : joined.ranks)
      if (rank < job.world_size) here[rank] = true;
  std::vector<std::uint16_t> missing;
  for (std::uint16_t rank = 0; rank < job.world_size; ++rank)
    if (!here[rank]) missing.push_back(rank);
  return missing;
}

Coordinator::Jobs::iterator Coordinator::find(const JobKey& key, std::uint32_t first_epoch) {
  const auto found = jobs_.find(key);
  if (found == jobs_.end() || found->second.state == JobState::kWaiting) return jobs_.end();
  return found->second.first_epoch == first_epoch ? found : jobs_.end();
}

std::optional<JobKey> Coordinator::key_of(std::uint32_t job_id) const {
  for (const auto& [key, job] : jobs_)
    if (job.id == job_id) return key;
  return std::nullopt;
}

void Coordinator::mark_involved(std::vector<bool>& involved) const {
  for (const auto& [name, takeover] : takeovers_)
    for (const api::NodeId node : takeover.nodes()) involved[node] = true;
  for (const auto& [key, job] : jobs_) {
    for (const auto& [node, joined] : job.joined) involved[node] = true;
    for (const auto& [node, joining] : job.joining) involved[node] = true;
    for (const api::NodeId node : nodes_of(job)) involved[node] = true;
  }
  if (has_jobs())
    for (const api::NodeId node : relays_.nodes()) involved[node] = true;
}

std::vector<JobView> Coordinator::views() const {
  std::vector<JobView> views;
  for (const auto& [key, job] : jobs_) {
    JobView& view = views.emplace_back();
    view.job_id = job.id;
    view.first_epoch = job.first_epoch;
    view.epoch = job.epoch;
    view.plan_kind = job.kind;
    view.user = job.user;
    if (job.state == JobState::kReady) view.plan_change = change_text(job);
    view.state = job.state;
    view.world_size = job.world_size;
    view.label = job.label;
    for (const auto& [node, joined] : job.joined)
      for (const std::uint16_t rank : joined.ranks) view.ranks.push_back({rank, node});
    const std::vector<std::uint16_t> missing = missing_ranks(job);
    const std::size_t named = std::min(missing.size(), protocol::kMaxMissingNamed);
    view.missing.assign(missing.begin(), missing.begin() + static_cast<std::ptrdiff_t>(named));
    view.missing_count = static_cast<std::uint32_t>(missing.size());
    if (!missing.empty())
      view.reason = job.state == JobState::kWaiting ? waiting_text(job)
                                                    : "goes on without " + ranks_text(missing);
    if (missing.empty() && job.state == JobState::kWaiting)
      view.reason = job.planning ? "its plan is being made" : "waiting for nodes that may sum";
    if (job.state == JobState::kPrepared)
      view.reason = "waiting for " + node_text(config_, *job.change->awaited().begin()) +
                    " to install the plan";
  }
  return views;
}

}  // namespace gradplane::session
