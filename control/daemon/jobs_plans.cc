// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Another plan of a job that runs.
#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "control/daemon/jobs.h"
#include "control/daemon/numa.h"
#include "dataplane/engine/local_plan.h"

namespace gradplane::daemon {

std::vector<std::uint64_t> link_rates_of(const config::Config& config) {
  std::vector<std::uint64_t> rates;
  for (const config::NodeConfig& node : config.cluster.nodes) {
    rates.push_back(node.port.link_rate_bits_per_s.value_or(0));
  }
  return rates;
}

Status JobTable::prepare_plan(const session::PreparePlan& order) {
  InstalledJob* job = find(order.job_id, order.first_epoch);
  if (job == nullptr) return Error{"the job does not run here"};
  const bool has_room = std::all_of(job->parts.begin(), job->parts.end(), [](const auto& part) {
    return part.runtime->has_room_for_plan();
  });
  if (!has_room) {
    return Error{
        fmt::format("node {} still holds the plan before, or one that was aborted; ask again "
                    "in a moment",
                    config_.self_node().name)};
  }
  std::vector<std::unique_ptr<job::Plan>> plans;  // by part
  try {
    for (const JobPart& part : job->parts) {
      const CorePart core = part.runtime->job().config().core;
      job::PlanConfig local = engine::local_plan(order.plan, config_.self, link_rates_of(config_),
                                                 job->grants, config_.multicast.enabled, core);
      local.key = engine::key_of_part(order.packet_key, core.index);
      const MemoryNear near(poll_cpu(config_, part.core));
      auto plan = part.runtime->make_plan(local);
      if (plan == nullptr) break;
      plans.push_back(std::move(plan));
    }
  } catch (const std::bad_alloc&) {
  }
  if (plans.size() < job->parts.size()) {
    for (std::size_t p = 0; p < plans.size(); ++p)
      job->parts[p].runtime->destroy_plan(plans[p].release());
    return Error{fmt::format("node {} has not enough memory for a second plan; lower rounds.bytes",
                             config_.self_node().name)};
  }
  job->next_plan = order.plan;
  ++plans_revision_;
  for (std::size_t p = 0; p < plans.size(); ++p) {
    plan_order(job->parts[p], api::Command::Kind::kPreparePlan, order.plan.epoch, 0,
               plans[p].release());
  }
  return Nothing{};
}

void JobTable::commit_plan(const session::CommitPlan& order) {
  InstalledJob* job = find(order.job_id, order.first_epoch);
  if (job == nullptr) return;
  if (job->plan.epoch != order.epoch) job->plan_before = std::move(job->plan);
  job->epoch = order.epoch;
  job->kind = job->next_plan.kind;
  job->plan = job->next_plan;
  ++plans_revision_;
  job->plan.activation_round = order.activation_round;
  job->bounds->use(job->next_plan);
  plan_order(*job, api::Command::Kind::kCommitPlan, order.epoch, order.activation_round);
}

void JobTable::abort_plan(const session::AbortPlan& order) {
  if (InstalledJob* job = find(order.job_id, order.first_epoch))
    plan_order(*job, api::Command::Kind::kAbortPlan, order.epoch, 0);
}

void JobTable::end_older_plan(const session::EndOlderPlan& order) {
  if (InstalledJob* job = find(order.job_id, order.first_epoch))
    plan_order(*job, api::Command::Kind::kEndOlderPlan, order.epoch, 0);
}

std::optional<api::Event> JobTable::take_plan_event(const api::Event& event) {
  InstalledJob* const job = owner_of(event.job);
  if (job == nullptr) {  // event.job is gone, and a plan that the poll loop did not take is left
    const std::unique_ptr<job::Plan> left(event.plan);
    return std::nullopt;
  }
  if (event.plan != nullptr) event.job->destroy_plan(event.plan);
  const auto told = job->answers.take(event);
  if (!told) return std::nullopt;
  if (told->kind != api::Event::Kind::kPlanPrepared) on_plan_returned(*job, told->epoch);
  // The session forgets a plan that is refused. Cores that have prepared it would hold rounds back
  // for ever, so they have to abort it.
  if (told->kind == api::Event::Kind::kPlanRefused && job->parts.size() > 1 &&
      job->state == InstalledJob::State::kRunning)
    plan_order(*job, api::Command::Kind::kAbortPlan, told->epoch, 0);
  return told;
}

void JobTable::on_plan_returned(InstalledJob& job, std::uint32_t epoch) {
  if (job.plan_before && job.plan_before->epoch == epoch) job.plan_before.reset();
  if (job.next_plan.epoch == epoch) job.next_plan = job.plan;
  ++plans_revision_;
}

void JobTable::plan_order(const InstalledJob& job, api::Command::Kind kind, std::uint32_t epoch,
                          std::uint32_t round) {
  for (const JobPart& part : job.parts) plan_order(part, kind, epoch, round);
}

void JobTable::plan_order(const JobPart& part, api::Command::Kind kind, std::uint32_t epoch,
                          std::uint32_t round, job::Plan* plan) {
  PlanOrder& next = plan_orders_.emplace_back();
  next.core = part.core;
  api::Command& order = next.command;
  order.kind = kind;
  order.job = part.runtime.get();
  order.epoch = epoch;
  order.round = round;
  order.plan = plan;
  ask_back();
}

}  // namespace gradplane::daemon
