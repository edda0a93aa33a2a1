// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/daemon/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "dataplane/base/assert.h"
#include "dataplane/engine/local_plan.h"

namespace gradplane::daemon {
namespace {

core::JobConfig job_config(const config::Config& config, const session::InstallJob& order) {
  core::JobConfig job;
  job.job = order.job_id;
  job.epoch = order.epoch;
  job.self = config.self;
  job.authenticate = config.authenticate;
  job.key = order.packet_key;
  job.block_bytes = config.block_bytes;
  job.round_bytes = config.round_bytes;
  std::vector<std::uint64_t> rates;
  for (const config::NodeConfig& node : config.cluster.nodes) {
    rates.push_back(node.port.link_rate_bits_per_s.value_or(0));
  }
  engine::fill_local_plan(job, order.plan, config.self, rates);
  return job;
}

}  // namespace

Status JobTable::install(const session::InstallJob& order, RankTable& ranks) {
  if (commands_.room() == 0) {
    return Error{"the poll loop does not take commands; is its processor overloaded?"};
  }
  std::vector<std::uint16_t> numbers;
  std::vector<std::shared_ptr<engine::RankChannel>> channels;
  std::string run_id;
  for (const session::LocalRank& local : order.local_ranks) {
    const auto rank = ranks.find(local.handle);
    if (rank == ranks.end()) return Error{fmt::format("rank {} is no longer attached", local.rank)};
    numbers.push_back(local.rank);
    channels.push_back(rank->second.channel);
    run_id = rank->second.attach.run_id;
  }
  std::unique_ptr<engine::JobRuntime> runtime;
  try {
    runtime = std::make_unique<engine::JobRuntime>(job_config(config_, order), numbers, channels);
  } catch (const std::bad_alloc&) {
    return Error{
        fmt::format("node {} has not enough memory for the job's rounds; lower rounds.bytes",
                    config_.self_node().name)};
  }
  for (const session::LocalRank& local : order.local_ranks) ranks.at(local.handle).in_engine = true;
  api::Command add;
  add.kind = api::Command::Kind::kAddJob;
  add.job = runtime.get();
  GP_ASSERT(commands_.push(add));
  jobs_.push_back({.id = order.job_id,
                   .epoch = order.epoch,
                   .world_size = order.world_size,
                   .label = order.label,
                   .run_id = run_id,
                   .local_ranks = order.local_ranks,
                   .runtime = std::move(runtime)});
  return Nothing{};
}

void JobTable::remove(std::uint32_t id, std::uint32_t epoch) {
  for (InstalledJob& job : jobs_) {
    if (job.id != id || job.epoch != epoch || job.state != InstalledJob::State::kRunning) continue;
    job.state = InstalledJob::State::kUnwanted;
  }
  ask_back();
}

void JobTable::ask_back() {
  for (InstalledJob& job : jobs_) {
    if (job.state != InstalledJob::State::kUnwanted) continue;
    api::Command remove;
    remove.kind = api::Command::Kind::kRemoveJob;
    remove.job = job.runtime.get();
    if (!commands_.push(remove)) return;
    job.state = InstalledJob::State::kLeaving;
  }
}

void JobTable::on_returned(engine::JobRuntime* runtime) {
  const auto at = std::find_if(jobs_.begin(), jobs_.end(), [&](const InstalledJob& job) {
    return job.runtime.get() == runtime;
  });
  if (at == jobs_.end()) return;  // refused and asked back at once: the other answer came first
  ended_.push_back({.id = at->id,
                    .epoch = at->epoch,
                    .world_size = at->world_size,
                    .label = at->label,
                    .run_id = at->run_id,
                    .counters = runtime->job().counters()});
  if (ended_.size() > kEndedKept) ended_.pop_front();
  jobs_.erase(at);
}

const InstalledJob* JobTable::find_running(const engine::JobRuntime* runtime) const {
  for (const InstalledJob& job : jobs_) {
    if (job.runtime.get() != runtime) continue;
    return job.state == InstalledJob::State::kRunning ? &job : nullptr;
  }
  return nullptr;
}

}  // namespace gradplane::daemon
