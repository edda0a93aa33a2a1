// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Commands from the control thread and events to it. This code is cold.
#include <algorithm>
#include <cstring>

#include "dataplane/base/assert.h"
#include "dataplane/engine/engine.h"
#include "dataplane/hop/clock.h"
#include "dataplane/wire/envelope.h"

namespace gradplane::engine {

/// Entries of the event queue that are kept free of other nodes' messages, so that answers about
/// jobs and snapshots always fit.
constexpr std::size_t kReservedEvents = 4 * kMaxJobs;
static_assert(kReservedEvents < api::kQueueEntries);

/// The engine looks for a lease several times in each lease period.
constexpr Duration kLeaseLookInterval = Duration::ms(1);
static_assert(kLeaseLookInterval < hop::kLeasePeriod);

/// False if the command cannot be executed yet; the caller tries again later.
bool Engine::obey(const api::Command& command) {
  switch (command.kind) {
    case api::Command::Kind::kAddJob:
      add_job(command.job);
      return true;
    case api::Command::Kind::kRemoveJob:
      remove_job(command.job);
      return true;
    case api::Command::Kind::kSendControl:
      return control_out_.push(command.control);
    case api::Command::Kind::kAddBucket:
      add_bucket(command.job, command.bucket);
      return true;
    case api::Command::Kind::kPreparePlan:
      prepare_plan(command);
      return true;
    case api::Command::Kind::kCommitPlan:
      commit_plan(command);
      return true;
    case api::Command::Kind::kAbortPlan:
      abort_plan(command);
      return true;
    case api::Command::Kind::kEndOlderPlan:
      if (has_job(command.job)) command.job->job().end_older_plan(command.epoch);
      return true;
    case api::Command::Kind::kFillSnapshot:
      fill_snapshot(*command.snapshot);
      scratch_event_ = {};
      scratch_event_.kind = api::Event::Kind::kSnapshotFilled;
      scratch_event_.snapshot = command.snapshot;
      tell(scratch_event_);
      return true;
  }
  return true;
}

void Engine::add_job(JobRuntime* job) {
  const JobRefusal refusal = node_.add(&job->job());
  if (refusal == JobRefusal::kNone) {
    jobs_[job_count_++] = job;
    if (job->job().is_joining()) tell_prepared(job, job->job().epoch(), 0);
    return;
  }
  scratch_event_ = {};
  scratch_event_.kind = api::Event::Kind::kJobRefused;
  scratch_event_.job = job;
  scratch_event_.job_refusal = refusal;
  tell(scratch_event_);
}

/// A removed job needs no bucket. The control thread knows that it is removed, since it asked for
/// the job back.
void Engine::add_bucket(JobRuntime* job, aggregate::Bucket* bucket) {
  if (has_job(job)) (void)job->job().add_bucket(bucket);
}

bool Engine::has_job(const JobRuntime* job) const {
  const auto end = jobs_.begin() + static_cast<std::ptrdiff_t>(job_count_);
  return std::find(jobs_.begin(), end, job) != end;
}

/// Sends an event that names the plan by its epoch and hands the plan over.
void Engine::tell_of_plan(api::Event::Kind kind, JobRuntime* job, std::unique_ptr<job::Plan> plan,
                          PlanRefusal refusal) {
  scratch_event_ = {};
  scratch_event_.kind = kind;
  scratch_event_.job = job;
  scratch_event_.epoch = plan->epoch();
  scratch_event_.plan_refusal = refusal;
  scratch_event_.plan = plan.release();
  tell(scratch_event_);
}

void Engine::prepare_plan(const api::Command& command) {
  std::unique_ptr<job::Plan> plan(command.plan);
  const job::Prepared prepared = has_job(command.job)
                                     ? node_.prepare(&command.job->job(), plan)
                                     : job::Prepared{.refusal = PlanRefusal::kNoJob};
  if (prepared.refusal != PlanRefusal::kNone) {
    return tell_of_plan(api::Event::Kind::kPlanRefused, command.job, std::move(plan),
                        prepared.refusal);
  }
  tell_prepared(command.job, command.epoch, prepared.horizon);
}

void Engine::tell_prepared(JobRuntime* job, std::uint32_t epoch, std::uint32_t horizon) {
  scratch_event_ = {};
  scratch_event_.kind = api::Event::Kind::kPlanPrepared;
  scratch_event_.job = job;
  scratch_event_.epoch = epoch;
  scratch_event_.round = horizon;
  tell(scratch_event_);
}

/// If this node has already passed the activation round, the coordinator has made a mistake. The
/// plan goes back, and the session, which has committed it, ends the job.
void Engine::commit_plan(const api::Command& command) {
  if (!has_job(command.job)) return;
  if (command.job->commit(command.epoch, command.round)) return;
  if (auto plan = command.job->job().abort(command.epoch)) {
    tell_of_plan(api::Event::Kind::kPlanRefused, command.job, std::move(plan),
                 PlanRefusal::kPassed);
  }
}

void Engine::abort_plan(const api::Command& command) {
  if (!has_job(command.job)) return;
  if (auto plan = command.job->job().abort(command.epoch)) {
    tell_of_plan(api::Event::Kind::kPlanReturned, command.job, std::move(plan));
  }
}

/// Gives a plan that has ended back. True if there was one, or if a bucket let go of it. Without
/// room for the event the plan stays where it is.
bool Engine::return_ended_plan(JobRuntime* job) {
  if (events_.room() == 0 || !job->job().has_ended_plan()) return false;
  if (auto plan = job->job().take_ended_plan()) {
    tell_of_plan(api::Event::Kind::kPlanReturned, job, std::move(plan));
  }
  return true;
}

void Engine::remove_job(JobRuntime* job) {
  node_.remove(&job->job());
  const auto end = jobs_.begin() + static_cast<std::ptrdiff_t>(job_count_);
  const auto at = std::find(jobs_.begin(), end, job);
  if (at != end) *at = jobs_[--job_count_];
  scratch_event_ = {};
  scratch_event_.kind = api::Event::Kind::kJobRemoved;
  scratch_event_.job = job;
  tell(scratch_event_);
}

/// A report is lost if the queue is full; the gap in the report numbers shows it.
void Engine::report_rounds() {
  for (std::size_t j = 0; j < job_count_; ++j) {
    job::Job& job = jobs_[j]->job();
    while (job.poll_report(scratch_report_.report)) {
      scratch_report_.job = job.config().job;
      scratch_report_.epoch = job.config().epoch;
      scratch_report_.part = job.config().core.index;
      (void)reports_.push(scratch_report_);
    }
  }
}

/// The control thread empties its queue in every turn of its loop. If it ever stops, events are
/// lost and counted. The session sends lost control messages again. Nothing repeats an event of a
/// job, so kReservedEvents keeps room for these.
void Engine::tell(const api::Event& event) {
  if (!events_.push(event)) ++control_lost_;
}

void Engine::give_up_control(std::uint16_t node, std::span<const std::byte> body) {
  // Messages from the network must not crowd out events of this engine.
  if (events_.room() <= kReservedEvents) {
    ++control_lost_;
    return;
  }
  scratch_event_.kind = api::Event::Kind::kControl;
  scratch_event_.job = nullptr;
  scratch_event_.snapshot = nullptr;
  scratch_event_.plan = nullptr;
  scratch_event_.control.node = node;
  scratch_event_.control.length_bytes = static_cast<std::uint16_t>(body.size());
  std::memcpy(scratch_event_.control.bytes.data(), body.data(), body.size());
  tell(scratch_event_);
}

std::uint32_t Engine::write_control(std::span<std::byte> out, const api::ControlBytes& control) {
  wire::write_envelope(out, {.type = wire::PacketType::kControl,
                             .sender = options_.self,
                             .number = ++control_sent_,
                             .timestamp_us = hop::clock_us(now_)});
  std::memcpy(out.data() + wire::kEnvelopeBytes, control.bytes.data(), control.length_bytes);
  return static_cast<std::uint32_t>(wire::kEnvelopeBytes + control.length_bytes);
}

void Engine::report_mismatch(JobRuntime* job, const job::Event& event) {
  scratch_event_ = {};
  scratch_event_.kind = api::Event::Kind::kMismatch;
  scratch_event_.job = job;
  scratch_event_.round = event.round;
  scratch_event_.node = event.node;
  scratch_event_.ours = event.ours.statement();
  scratch_event_.theirs = event.theirs.statement();
  tell(scratch_event_);
}

void Engine::report_stall(JobRuntime* job, const job::Event& event) {
  scratch_event_ = {};
  scratch_event_.kind = api::Event::Kind::kStalled;
  scratch_event_.job = job;
  scratch_event_.round = event.round;
  scratch_event_.node = event.node;
  scratch_event_.stall = event.stall;
  tell(scratch_event_);
}

/// States how much of the node's link this engine wants, and takes its lease. A packet that the
/// link holds back waits for the next lease, so a busy engine looks often.
void Engine::share_link(Instant now) {
  SharedLink& link = *options_.shared_link;
  if (demand_.look(now, queue_.counters().tx_bytes, node_.is_held_back(now)))
    link.want(options_.queue, demand_.wanted());
  if (options_.queue == 0) link.renew(now);
  if (hop::LinkLease lease; link.take(options_.queue, lease)) node_.take_lease(lease);
  next_lease_ = now + (has_jobs() ? kLeaseLookInterval : hop::kLeasePeriod);
}

/// The last sender is looked up first, because packets come in trains.
std::optional<std::uint16_t> Engine::node_of(Ipv4 address) {
  if (last_sender_ && last_sender_->first == address) return last_sender_->second;
  const auto at = std::lower_bound(node_by_address_.begin(), node_by_address_.end(),
                                   std::pair<Ipv4, std::uint16_t>{address, 0});
  if (at == node_by_address_.end() || at->first != address) return std::nullopt;
  last_sender_ = *at;
  return at->second;
}

}  // namespace gradplane::engine
