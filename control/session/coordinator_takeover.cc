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

const char* const kWithoutNode = "the job goes on, or has begun anew, without this node";
const char* const kLaterRun = "a later run of the same job goes on";
const char* const kChangeLost = "the node that coordinated it was lost; ask again for another plan";

/// Two nodes that take over jobs of one coordinator do not count on from the same number.
constexpr std::uint32_t kLargestEpochStep = 0xfffff;
/// No job has so many plans. A coordinator that counted on from more might come to the end.
constexpr std::uint32_t kMaxReportedEpoch = 0xefffffff;
static_assert(kMaxReportedEpoch < UINT32_MAX - 100 * kLargestEpochStep);

template <typename M>
constexpr bool kIsAnswer =
    std::is_same_v<M, protocol::Report> || std::is_same_v<M, protocol::PlanIs>;

/// The plan is what a peer has sent. `ranks` are those that it names, in order. Why a job of so
/// many ranks cannot have it; empty: it can.
std::string why_not_ranks(const std::vector<std::uint16_t>& ranks, std::uint32_t world_size) {
  if (ranks.empty()) return "the plan that its members have names no ranks";
  if (ranks.back() < world_size) return {};
  return "the plan that its members have names rank " + std::to_string(ranks.back()) +
         ", and the job has only " + std::to_string(world_size) + " ranks";
}

}  // namespace

void Coordinator::resign() {
  jobs_.clear();
  takeovers_.clear();
}

/// Keeps what comes of a job that is not known yet for the time when it is.
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
           node_text(config_, from) + " has sent more of it than the " +
               std::to_string(kMaxHeldBytes >> 20) + " MiB that are kept while nodes are asked",
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

/// Jobs that wait may be more than there are slots for a moment: those that run go before them.
bool Coordinator::has_slot_for_takeover() const {
  const auto taken = std::count_if(jobs_.begin(), jobs_.end(), [](const auto& entry) {
    return entry.second.state != JobState::kWaiting;
  });
  return static_cast<std::size_t>(taken) + takeovers_.size() < kMaxJobs;
}

/// From a node that nobody needed when the job was taken over, or that has an earlier run of it.
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
  // Ranks that have come before: of nodes that had not heard of the plan, or that want to join.
  const auto waiting = jobs_.find(m.key);
  if (waiting == jobs_.end()) return;
  const Job& job = waiting->second;
  for (const auto& [node, joined] : job.joined)
    (void)takeover.hold(node, protocol::Join{job.key, joined.attempt, job.user, job.world_size,
                                             joined.ranks, job.label});
  jobs_.erase(waiting);
}

void Coordinator::on(api::NodeId from, const protocol::PlanIs& m, Instant now) {
  const TakeoverName name{m.key, m.first_epoch};
  const auto takeover = takeovers_.find(name);
  if (takeover == takeovers_.end()) return;
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

/// Of one key only the latest run goes on.
std::string Coordinator::why_not_beside_other_run(const TakeoverName& name) const {
  const auto other = jobs_.find(name.first);
  const bool is_earlier = other != jobs_.end() && other->second.state != JobState::kWaiting &&
                          other->second.first_epoch > name.second;
  return is_earlier ? kLaterRun : std::string();
}

/// It is about to take the place of this one.
void Coordinator::end_earlier_run(const protocol::JobKey& key) {
  const auto other = jobs_.find(key);
  if (other != jobs_.end() && other->second.state != JobState::kWaiting) fail(other, kLaterRun);
}

/// `failed`: why the job cannot go on; empty: what has been reported decides.
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

/// What all members know of the job, without its plans.
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

/// The job was about to begin, and has begun nowhere: its first plan is prepared where it was not.
/// Returns why that cannot be.
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
  if (kept.change->may_commit()) commit(kept);
  return {};
}

/// The job runs. Returns why it cannot go on.
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

/// Rounds of the plan before may be open still. If they are not, some node may not have heard it.
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

/// Tells each node what becomes of the plans that it has.
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

/// Every member has a part of the same row of tables. The longest one is for all.
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

void Coordinator::lose_in_takeovers(api::NodeId node, const std::string& why, Instant now) {
  std::vector<TakeoverName> names;
  for (const auto& [name, takeover] : takeovers_)
    if (takeover.nodes().contains(node)) names.push_back(name);
  for (const TakeoverName& name : names) {
    const auto takeover = takeovers_.find(name);
    if (takeover == takeovers_.end()) continue;  // what another one held has ended it
    takeover->second.on_lost(node, why);
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
