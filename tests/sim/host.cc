// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/host.h"

#include <algorithm>
#include <cstring>

#include "dataplane/engine/local_plan.h"
#include "dataplane/port/group_address.h"

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
                          bool joins) {
  const Tolerance& tolerance = scenario.tolerance;
  job::JobConfig config;
  config.job = scenario.job;
  config.epoch = plan.epoch;
  config.key = key_of(config.epoch);
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
    : node_(node), port_(network, node, address_of(node), clock) {
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
    auto channel =
        ipc::Channel::create({.slot_count = kRoundSlots, .slot_bytes = scenario.round_bytes});
    channels.push_back(
        std::make_shared<engine::RankChannel>(engine::RankChannel{std::move(channel.value()), {}}));
    trainers.push_back(std::make_unique<Trainer>(scenario, rank, static_cast<std::uint32_t>(world),
                                                 channels.back(), checker));
    if (!joins) trainers.back()->begin_at(0);
  }
  runtime_ = std::make_unique<engine::JobRuntime>(job_config(scenario, plan, node_, joins), ranks,
                                                  std::move(channels));
  api::Command add;
  add.kind = api::Command::Kind::kAddJob;
  add.job = runtime_.get();
  command(add);
}

void Host::join_groups(const api::Plan& plan) {
  std::vector<port::Group>& joined = groups_.emplace_back();
  for (const GroupName& name : engine::groups_of(plan, job_id_, node_)) {
    const port::Group group = port::group_of(name, options_.groups, options_.udp_port);
    if (port_.join_group(group).ok()) joined.push_back(group);
  }
  if (groups_.size() <= kMaxLivePlans) return;
  for (const port::Group& group : groups_.front()) port_.leave_group(group);
  groups_.erase(groups_.begin());
}

void Host::leave_job() {
  api::Command remove;
  remove.kind = api::Command::Kind::kRemoveJob;
  remove.job = runtime_.get();
  command(remove);
}

void Host::end_job() {
  buckets.clear();
  runtime_.reset();
}

void Host::crash() {
  if (!is_up()) return;
  engine_.reset();
  // Plans on their way between the threads are nobody's now.
  for (; queues_->commands.front() != nullptr; queues_->commands.pop()) {
    delete queues_->commands.front()->plan;
  }
  for (; queues_->events.front() != nullptr; queues_->events.pop()) {
    delete queues_->events.front()->plan;
  }
  queues_.reset();
  runtime_.reset();
  buckets.clear();
}

void Host::restart() {
  queues_ = std::make_unique<Queues>();
  engine_ = std::make_unique<engine::Engine>(options_, port_.queue(0), queues_->commands,
                                             queues_->events, queues_->reports);
}

Instant Host::wake_time(Instant now) const {
  Instant next = is_up() ? engine_->next_deadline(now) : Instant::never();
  for (const auto& trainer : trainers) next = std::min(next, trainer->next_deadline());
  return next;
}

bool Host::at_rest() const {
  if (!has_job()) return true;
  for (const hop::Peer& peer : runtime_->job().peers()) {
    if (peer.flow.in_flight() > 0) return false;
  }
  return !runtime_->job().waiting().any;
}

}  // namespace gradplane::sim
