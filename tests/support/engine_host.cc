// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/support/engine_host.h"

#include <cstring>

#include "dataplane/base/assert.h"
#include "dataplane/engine/local_plan.h"

namespace gradplane::testing {

bool TrainerEnd::submit(std::uint32_t round, std::uint32_t elements, float value) {
  std::byte* slot = channel->channel.slot(round).data();
  for (std::uint32_t e = 0; e < elements; ++e) {
    std::memcpy(slot + e * sizeof value, &value, sizeof value);
  }
  return submissions.push({.round = round,
                           .elements = elements,
                           .element_type = static_cast<std::uint8_t>(ElementType::kFloat32)});
}

float TrainerEnd::last(std::uint32_t round, std::uint32_t elements) const {
  float value;
  std::memcpy(&value, channel->channel.slot(round).data() + (elements - 1) * sizeof value,
              sizeof value);
  return value;
}

EngineHost::EngineHost(port::LoopbackNetwork& network, std::uint16_t self,
                       const std::vector<Ipv4>& nodes, const Wrap& wrap, Instant (*clock)())
    : self_(self) {
  auto port = network.open(nodes[self]);
  GP_ASSERT(port.ok());
  port_ = std::move(port.value());
  if (wrap) wrapped_ = wrap(port_->queue(0));
  queue_ = wrap ? wrapped_.get() : &port_->queue(0);
  engine::EngineOptions options;
  options.clock = clock;
  start(0, nodes, std::move(options));
}

EngineHost::EngineHost(port::Port& port, std::uint16_t queue, std::uint16_t self,
                       const std::vector<Ipv4>& nodes, engine::SharedLink* link,
                       std::uint64_t bits_per_second)
    : self_(self), queue_(&port.queue(queue)) {
  engine::EngineOptions options;
  options.shared_link = link;
  options.link.bits_per_second = bits_per_second;
  start(queue, nodes, std::move(options));
}

void EngineHost::start(std::uint16_t queue, const std::vector<Ipv4>& nodes,
                       engine::EngineOptions options) {
  options.self = self_;
  options.nodes = nodes;
  options.queue = queue;
  options.udp_port = static_cast<std::uint16_t>(kFirstUdpPort + queue);
  engine_ =
      std::make_unique<engine::Engine>(std::move(options), *queue_, commands_, events_, reports_);
}

EngineHost::Job& EngineHost::add(const JobSpec& spec) {
  job::JobConfig config;
  config.job = spec.id;
  config.epoch = spec.plan.epoch;
  config.self = self_;
  config.block_bytes = spec.block_bytes;
  config.round_bytes = spec.round_bytes;
  config.authenticate = spec.authenticate;
  config.grants = spec.grants;
  config.joins = spec.joins;
  config.core = spec.core;
  engine::fill_local_plan(config, spec.plan, self_, {});
  std::vector<std::uint16_t> ranks;
  for (const api::Member& member : spec.plan.members) {
    if (member.node == self_) ranks = member.ranks;
  }
  auto job = std::make_unique<Job>();
  std::vector<std::shared_ptr<engine::RankChannel>> channels = spec.channels;
  for (std::size_t r = channels.size(); r < ranks.size(); ++r) {
    auto channel =
        ipc::Channel::create({.slot_count = kRoundSlots, .slot_bytes = spec.round_bytes});
    GP_ASSERT(channel.ok());
    channels.push_back(
        std::make_shared<engine::RankChannel>(engine::RankChannel{std::move(channel.value()), {}}));
    job->trainers.emplace_back(channels.back());
  }
  job->runtime = std::make_unique<engine::JobRuntime>(std::move(config), ranks, channels);
  api::Command add;
  add.kind = api::Command::Kind::kAddJob;
  add.job = job->runtime.get();
  command(add);
  jobs_.push_back(std::move(job));
  return *jobs_.back();
}

void EngineHost::command(const api::Command& command) {
  GP_ASSERT(commands_.push(command));
}

bool EngineHost::next_event(api::Event& out) {
  const api::Event* event = events_.front();
  if (event == nullptr) return false;
  out = *event;
  events_.pop();
  return true;
}

std::vector<api::Event> EngineHost::events() {
  std::vector<api::Event> out;
  while (const api::Event* event = events_.front()) {
    out.push_back(*event);
    events_.pop();
  }
  return out;
}

std::vector<api::JobRoundReport> EngineHost::reports() {
  std::vector<api::JobRoundReport> out;
  while (const api::JobRoundReport* report = reports_.front()) {
    out.push_back(*report);
    reports_.pop();
  }
  return out;
}

std::unique_ptr<api::EngineSnapshot> EngineHost::snapshot(Instant now) {
  auto out = std::make_unique<api::EngineSnapshot>();
  (void)events();
  api::Command fill;
  fill.kind = api::Command::Kind::kFillSnapshot;
  fill.snapshot = out.get();
  command(fill);
  for (int turn = 0; turn < 64; ++turn) {
    engine_->poll_once(now);
    for (const api::Event& event : events()) {
      if (event.kind == api::Event::Kind::kSnapshotFilled) return out;
    }
  }
  GP_ASSERT(!"the engine answers a snapshot within its housekeeping turns");
  return out;
}

EngineCluster::EngineCluster(std::uint16_t count, Instant (*clock)()) {
  for (std::uint16_t n = 0; n < count; ++n) nodes_.push_back({0x0a000001U + n});
  auto network = port::LoopbackNetwork::create(nodes_, {});
  GP_ASSERT(network.ok());
  network_ = network.value();
  for (std::uint16_t n = 0; n < count; ++n) {
    hosts_.push_back(std::make_unique<EngineHost>(*network_, n, nodes_, EngineHost::Wrap(), clock));
  }
}

void EngineCluster::turn() {
  for (const auto& host : hosts_) host->engine().poll_once(now_);
  now_ = now_ + Duration::us(1);
}

api::Plan star_of(std::uint16_t hosts) {
  api::Plan plan{.epoch = 1, .activation_round = 0, .members = {}, .trees = {}};
  api::Tree tree{.weight = 1, .root = 0, .parent = {}};
  for (std::uint16_t n = 0; n < hosts; ++n) {
    plan.members.push_back({.node = n, .ranks = {n}});
    tree.parent.push_back(n == 0 ? api::kNoNode : 0);
  }
  plan.trees.push_back(tree);
  return plan;
}

}  // namespace gradplane::testing
