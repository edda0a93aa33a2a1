// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "control/config/config.h"
#include "control/daemon/jobs.h"
#include "control/daemon/ranks.h"
#include "tests/support/catch.h"
#include "tests/support/engine_host.h"

/// The job table of a daemon on node w0, without a poll loop. Commands stay in their queue.
namespace gradplane::daemon::testing {

inline constexpr std::size_t kRoundBytes = 4096;
inline constexpr session::RankHandle kHandle = 7;

inline config::Config three_nodes() {
  config::Config config;
  config.self = 0;
  for (const char* name : {"w0", "w1", "w2"}) {
    config.cluster.nodes.emplace_back();
    config.cluster.nodes.back().name = name;
  }
  config.plan.root = 0;
  config.round_bytes = kRoundBytes;
  config.block_bytes = 512;
  config.liveness.suspect_after = Duration::seconds(3);
  return config;
}

/// A planner's input with one rank on each of these nodes.
inline session::PlanInput ranks_on(std::vector<api::NodeId> nodes) {
  session::PlanInput input;
  input.epoch = 3;
  std::uint16_t rank = 0;
  for (const api::NodeId node : nodes) input.members.push_back({node, {rank++}});
  return input;
}

struct JobBench {
  explicit JobBench(std::size_t queue_entries = 256) : commands(queue_entries) {}
  JobBench(const JobBench&) = delete;
  JobBench& operator=(const JobBench&) = delete;
  /// Destroys the prepared plans that no poll loop took.
  ~JobBench() {
    for (const api::Command* command = commands.front(); command != nullptr;
         command = commands.front()) {
      if (command->plan != nullptr) command->job->destroy_plan(command->plan);
      commands.pop();
    }
  }

  void attach(session::RankHandle handle) {
    auto channel = make_channel(kRoundBytes);
    REQUIRE(channel.ok());
    Rank rank;
    rank.attach.run_id = "run";
    rank.channel = std::move(channel.value().channel);
    ranks.emplace(handle, std::move(rank));
  }
  /// A job of three ranks with rank 0 here. Ranks 1 and 2 are on the other nodes.
  static session::InstallJob order(std::uint32_t id, std::uint32_t epoch = 1) {
    session::InstallJob order;
    order.job_id = id;
    order.first_epoch = epoch;
    order.world_size = 3;
    order.label = "train";
    order.plan = gradplane::testing::star_of(3);
    order.plan.epoch = epoch;
    order.local_ranks = {{kHandle, 0}};
    return order;
  }
  void install(std::uint32_t id, std::uint32_t epoch = 1) {
    if (!ranks.contains(kHandle)) attach(kHandle);
    const Status installed = jobs.install(order(id, epoch), ranks);
    if (!installed) FAIL(installed.error().message);
  }
  /// Takes the next command out of the queue.
  api::Command next() {
    REQUIRE(commands.front() != nullptr);
    const api::Command command = *commands.front();
    commands.pop();
    return command;
  }
  bool add_bucket(std::uint32_t job, std::uint32_t bucket, std::size_t tensors = 1) {
    session::InstallBounds bounds;
    bounds.job_id = job;
    bounds.first_epoch = 1;
    bounds.table.bucket = bucket;
    bounds.table.elements = kRoundBytes / sizeof(float);
    const auto each = static_cast<std::uint32_t>(bounds.table.elements / tensors);
    for (std::uint32_t t = 0; t < tensors; ++t) {
      bounds.table.tensors.push_back({"layer" + std::to_string(t), t * each, each, 0.25F,
                                      api::BoundReason::kPattern, "layer*"});
    }
    return jobs.install_bounds(bounds).ok();
  }

  /// The poll loop of a job's core gives a plan back.
  void return_plan(engine::JobRuntime* runtime, std::uint32_t epoch) {
    api::Event event;
    event.kind = api::Event::Kind::kPlanReturned;
    event.job = runtime;
    event.epoch = epoch;
    (void)jobs.take_plan_event(event);
  }

  config::Config config = three_nodes();
  api::CommandQueue commands;
  JobTable jobs{config, {&commands}};
  RankTable ranks;
};

}  // namespace gradplane::daemon::testing
