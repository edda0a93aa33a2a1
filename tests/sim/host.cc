// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/host.h"

#include <algorithm>
#include <cstring>

#include "dataplane/engine/local_plan.h"
#include "dataplane/port/group_address.h"
#include "tests/sim/engine_watch.h"

namespace gradplane::sim {
namespace {

Ipv4 address_of(std::uint16_t node) {
  return {0x0a000001U + node};
}

std::uint64_t rate_of(const Scenario& scenario, std::size_t node) {
  if (!scenario.link_rates.empty()) return scenario.link_rates[node];
  return scenario.paced ? scenario.link.bits_per_second : 0;
}

}  // namespace

wire::Key key_of(std::uint32_t epoch) {
  wire::Key key{};
  std::memcpy(key.data(), &epoch, sizeof epoch);
  return key;
}

std::vector<std::uint64_t> link_rates(const Scenario& scenario) {
  std::vector<std::uint64_t> rates;
  for (std::size_t n = 0; n < everybody(scenario).size(); ++n)
    rates.push_back(rate_of(scenario, n));
  return rates;
}

job::JobConfig job_config(const Scenario& scenario, const api::Plan& plan, api::NodeId node,
                          bool joins, CorePart core) {
  const Tolerance& tolerance = scenario.tolerance;
  job::JobConfig config;
  config.job = scenario.job;
  config.epoch = plan.epoch;
  config.key = engine::key_of_part(key_of(config.epoch), core.index);
  config.core = core;
  config.self = node;
  config.joins = joins;
  config.authenticate = scenario.authenticate;
  config.block_bytes = scenario.block_bytes;
  config.round_bytes = scenario.round_bytes;
  config.compensation = tolerance.compensation;
  config.close_limits = {.floor = tolerance.floor,
                         .strict_rounds = tolerance.strict_rounds,
                         .slack = tolerance.slack,
                         .absent_after = tolerance.absent_after};
  config.congestion = scenario.congestion;
  config.parity_from = scenario.parity_from.value_or(Duration::max());
  config.grants = scenario.grants;
  config.forward_order = scenario.forward_order;
  config.stall_after = scenario.stall_after;
  config.staleness_steps = scenario.staleness_steps;
  engine::fill_local_plan(config, plan, node, link_rates(scenario), scenario.multicast);
  return config;
}

Host::Host(Network& network, const Scenario& scenario, api::NodeId node, const Instant& clock)
    : node_(node),
      port_(network, node, address_of(node), clock, {.queue_count = scenario.cores}),
      cores_(scenario.cores) {
  network.add_host(address_of(node));
  options_.self = node;
  options_.link = {.bits_per_second = rate_of(scenario, node),
                   .buffer_bytes = scenario.buffer_known ? scenario.link.queue_bytes : 0};
  for (std::size_t n = 0; n < everybody(scenario).size(); ++n) {
    options_.nodes.push_back(address_of(static_cast<std::uint16_t>(n)));
  }
  restart();
}

void Host::begin_job(const Scenario& scenario, const api::Plan& plan, bool joins, std::size_t world,
                     ToleranceChecker& checker) {
  std::vector<std::shared_ptr<engine::RankChannel>> channels;
  const std::vector<std::uint16_t>& ranks = member_of(plan, node_)->ranks;
  trainers.clear();
  job_id_ = scenario.job;
  if (scenario.multicast) join_groups(plan);
  for (const std::uint16_t rank : ranks) {
    auto channel = ipc::Channel::create({.slot_count = kRoundSlots,
                                         .slot_bytes = scenario.round_bytes,
                                         .core_count = static_cast<std::uint32_t>(cores_)});
    channels.push_back(
        std::make_shared<engine::RankChannel>(engine::RankChannel{std::move(channel.value()), {}}));
    trainers.push_back(std::make_unique<Trainer>(scenario, rank, static_cast<std::uint32_t>(world),
                                                 channels.back(), checker));
    if (!joins) trainers.back()->begin_at(0);
  }
  removed_ = 0;
  for (std::size_t c = 0; c < cores_; ++c) {
    const CorePart core{static_cast<std::uint16_t>(c), static_cast<std::uint16_t>(cores_)};
    runtimes_.push_back(std::make_unique<engine::JobRuntime>(
        job_config(scenario, plan, node_, joins, core), ranks, channels));
    api::Command add;
    add.kind = api::Command::Kind::kAddJob;
    add.job = runtimes_.back().get();
    command(c, add);
  }
}

void Host::join_groups(const api::Plan& plan) {
  std::vector<port::Group>& joined = groups_.emplace_back();
  for (const GroupName& name : engine::groups_of(plan, job_id_, node_, cores_)) {
    CorePart core{0, static_cast<std::uint16_t>(cores_)};
    while (!core.has_tree(name.tree)) ++core.index;
    const auto udp_port = static_cast<std::uint16_t>(options_.udp_port + core.index);
    const port::Group group = port::group_of(name, options_.groups, udp_port);
    if (port_.join_group(group).ok()) joined.push_back(group);
  }
  if (groups_.size() <= kMaxLivePlans) return;
  for (const port::Group& group : groups_.front()) port_.leave_group(group);
  groups_.erase(groups_.begin());
}

void Host::leave_job() {
  for (std::size_t c = 0; c < cores_; ++c) {
    api::Command remove;
    remove.kind = api::Command::Kind::kRemoveJob;
    remove.job = runtimes_[c].get();
    command(c, remove);
  }
}

void Host::end_job() {
  buckets.clear();
  runtimes_.clear();
}

void Host::crash() {
  if (!is_up()) return;
  engines_.clear();
  // Deletes plans that are in a queue between control and an engine, because no one owns them now.
  for (const auto& queues : queues_) {
    for (; queues->commands.front() != nullptr; queues->commands.pop())
      delete queues->commands.front()->plan;
    for (; queues->events.front() != nullptr; queues->events.pop())
      delete queues->events.front()->plan;
  }
  queues_.clear();
  end_job();
}

void Host::restart() {
  if (cores_ > 1) {
    shared_link_ = std::make_unique<engine::SharedLink>(options_.link.bits_per_second, cores_);
  }
  for (std::size_t c = 0; c < cores_; ++c) {
    engine::EngineOptions options = options_;
    options.queue = static_cast<std::uint16_t>(c);
    options.udp_port = static_cast<std::uint16_t>(options_.udp_port + c);
    options.shared_link = shared_link_.get();
    Queues& queues = *queues_.emplace_back(std::make_unique<Queues>());
    engines_.push_back(std::make_unique<engine::Engine>(
        std::move(options), port_.queue(c), queues.commands, queues.events, queues.reports));
  }
}

Instant Host::wake_time(Instant now) const {
  Instant next = Instant::never();
  {
    const Running engines(Running::Code::kEngine);
    for (const auto& engine : engines_) next = std::min(next, engine->next_deadline(now));
  }
  for (const auto& trainer : trainers) next = std::min(next, trainer->next_deadline());
  return next;
}

bool Host::at_rest() const {
  return std::all_of(runtimes_.begin(), runtimes_.end(), [](const auto& runtime) {
    const auto peers = runtime->job().peers();
    return !runtime->job().waiting().any &&
           std::all_of(peers.begin(), peers.end(),
                       [](const hop::Peer& peer) { return peer.flow.in_flight() == 0; });
  });
}

}  // namespace gradplane::sim
