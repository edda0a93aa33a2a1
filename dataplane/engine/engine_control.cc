// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// What the engine and the control thread say to each other. Cold.
#include <algorithm>
#include <cstring>

#include "dataplane/base/assert.h"
#include "dataplane/engine/engine.h"
#include "dataplane/hop/clock.h"
#include "dataplane/wire/envelope.h"

namespace gradplane::engine {

/// Of the event queue, kept free of other nodes' messages: job answers and snapshots always fit.
constexpr std::size_t kReservedEvents = 4 * kMaxJobs;
static_assert(kReservedEvents < api::kQueueEntries);

static_assert(hop::kDropCount <= api::kDropReasons);
static_assert(static_cast<std::size_t>(port::PortDrop::kCount) <= api::kPortDropReasons);

/// False: not now, ask again.
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

/// A job that is not here any more needs no bucket; control knows, since it asked for the job back.
void Engine::add_bucket(JobRuntime* job, aggregate::Bucket* bucket) {
  if (has_job(job)) (void)job->job().add_bucket(bucket);
}

bool Engine::has_job(const JobRuntime* job) const {
  const auto end = jobs_.begin() + static_cast<std::ptrdiff_t>(job_count_);
  return std::find(jobs_.begin(), end, job) != end;
}

/// Names the plan by its epoch, and gives it away.
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

/// An activation that this node has passed is a mistake of the coordinator: the plan goes back, and
/// the session, which has committed it, ends the job.
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

/// Without room for the event the plan stays where it is.
void Engine::return_ended_plan(JobRuntime* job) {
  if (events_.room() == 0) return;
  if (auto plan = job->job().take_ended_plan()) {
    tell_of_plan(api::Event::Kind::kPlanReturned, job, std::move(plan));
  }
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

/// A report that finds the queue full is lost; the number of the next one shows it.
void Engine::report_rounds() {
  for (std::size_t j = 0; j < job_count_; ++j) {
    job::Job& job = jobs_[j]->job();
    while (job.poll_report(scratch_report_.report)) {
      scratch_report_.job = job.config().job;
      scratch_report_.epoch = job.config().epoch;
      (void)reports_.push(scratch_report_);
    }
  }
}

/// Control empties its queue at every turn of its loop; if it ever stops, the loss is counted and
/// the session's own retransmission repairs what can be repaired.
void Engine::tell(const api::Event& event) {
  if (!events_.push(event)) ++control_lost_;
}

void Engine::give_up_control(std::uint16_t node, std::span<const std::byte> body) {
  // What the network sends may not crowd out what only we can say.
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

std::optional<std::uint16_t> Engine::node_of(Ipv4 address) const {
  const auto at = std::lower_bound(node_by_address_.begin(), node_by_address_.end(),
                                   std::pair<Ipv4, std::uint16_t>{address, 0});
  if (at == node_by_address_.end() || at->first != address) return std::nullopt;
  return at->second;
}

namespace {

void copy_traffic(api::TrafficSnapshot& out, const hop::Counters& in) {
  static_cast<TrafficCounts&>(out) = in;
  std::copy(in.drops.begin(), in.drops.end(), out.drops.begin());
}

void copy_flow(api::PeerSnapshot& out, const job::Job& job, hop::PeerIndex index, Instant now) {
  const hop::Peer& peer = job.peers()[index.index()];
  const hop::Flow& flow = peer.flow;
  const congestion::Stats stats = flow.controller().stats();
  out = {.node = peer.node,
         .window_blocks = flow.window(),
         .in_flight_blocks = flow.in_flight(),
         .granted = job.config().grants,
         .credit_blocks = peer.credit.credit(),
         .smoothed_rtt_ns = flow.smoothed_rtt().count_ns(),
         .min_rtt_ns = flow.min_rtt().count_ns(),
         .blocks_sent = flow.counts().sent,
         .blocks_retransmitted = flow.counts().retransmitted,
         .blocks_suspected_lost = flow.counts().suspected_lost,
         .rate_bits_per_second = flow.rate_bits_per_second(now),
         .pacing_bits_per_second = flow.controller().decide(now).pacing_bits_per_second,
         .controller = static_cast<std::uint8_t>(job.config().congestion.controller),
         .reason = static_cast<std::uint8_t>(stats.reason),
         .limit = static_cast<std::uint8_t>(job.limit_of(index, now)),
         .gain = stats.gain};
}

void copy_job(api::JobSnapshot& out, const job::Job& job, Instant now) {
  out.job = job.config().job;
  out.epoch = job.config().epoch;
  out.plan_epoch = job.epoch();
  copy_traffic(out.traffic, job.counters());
  const job::Waiting waiting = job.waiting();
  out.open_rounds = waiting.open_rounds;
  out.oldest_round = waiting.round;
  out.local_missing = waiting.local_missing;
  out.silent_node_count = waiting.silent_count;
  std::copy(waiting.silent_nodes.begin(), waiting.silent_nodes.end(), out.silent_nodes.begin());
  out.flow_count = static_cast<std::uint32_t>(job.peers().size());
  out.peer_count = static_cast<std::uint32_t>(std::min(job.peers().size(), out.peers.size()));
  for (std::size_t p = 0; p < out.peer_count; ++p) {
    copy_flow(out.peers[p], job, hop::PeerIndex::from_index(p), now);
  }
}

}  // namespace

void Engine::fill_snapshot(api::EngineSnapshot& out) const {
  out = {};
  copy_traffic(out.node, node_.counters());
  const port::PortCounters& port = queue_.counters();
  out.port.rx_datagrams = port.rx_datagrams;
  out.port.rx_bytes = port.rx_bytes;
  out.port.tx_datagrams = port.tx_datagrams;
  out.port.tx_bytes = port.tx_bytes;
  out.port.rx_missed = port.rx_missed;
  std::copy(port.drops.begin(), port.drops.end(), out.port.drops.begin());
  out.polls = polls_;
  out.busy_polls = busy_polls_;
  out.sleeps = sleeps_;
  out.control_lost = control_lost_;
  out.rank_faults = rank_faults_;
  out.job_count = static_cast<std::uint32_t>(job_count_);
  for (std::size_t j = 0; j < job_count_; ++j) copy_job(out.jobs[j], jobs_[j]->job(), now_);
}

}  // namespace gradplane::engine
