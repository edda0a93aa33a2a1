// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/ns3/gradplane_push.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "tests/sim/cluster.h"
#include "tests/support/seen_packet.h"

namespace gradplane::ns3_incast {
namespace {

EngineJob job_of(const Scenario& scenario) {
  EngineJob job;
  job.plan = sim::star(static_cast<std::uint16_t>(scenario.senders));
  job.round_bytes = scenario.push_bytes;
  job.rank_count = scenario.senders;
  for (const api::Member& member : job.plan.members)
    job.addresses.push_back(Star::address_of(member.node));
  return job;
}

}  // namespace

EngineSettings GradplanePush::settings_of(const Scenario& scenario, std::string_view name) {
  EngineSettings settings;
  settings.grants = name == "grants";
  if (settings.grants || name == "shares") {
    settings.link_bits_per_second = scenario.link_bits_per_second;
  }
  if (settings.grants) settings.buffer_bytes = scenario.queue_bytes;
  const auto& names = kControllerNames;
  const auto controller = std::find(names.begin(), names.end(), name);
  if (controller != names.end()) {
    settings.congestion.controller = static_cast<ControllerKind>(controller - names.begin());
  }
  return settings;
}

GradplanePush::GradplanePush(const Scenario& scenario, Star& star, const EngineSettings& settings)
    : scenario_(scenario),
      job_(job_of(scenario)),
      expected_(scenario.push_bytes / sizeof(float)),
      blocks_(static_cast<std::uint32_t>((scenario.push_bytes + kDefaultBlockBytes - 1) /
                                         kDefaultBlockBytes)),
      marks_heard_(scenario.senders) {
  for (std::size_t host = 0; host <= scenario.senders; ++host) {
    EngineSettings own = settings;
    own.node = static_cast<std::uint16_t>(host);
    hosts_.push_back(
        ns3::Create<EngineHost>(job_, own, [this](std::uint32_t) { rounds_->on_summed(); }));
    star.host(host)->AddApplication(hosts_.back());
    hosts_.back()->SetStartTime(ns3::Seconds(0));
  }
  ns3::Simulator::Schedule(ns3::MilliSeconds(1), &GradplanePush::watch, this);
}

void GradplanePush::watch() {
  hosts_[0]->port().set_witnesses([this](auto datagram) { on_root_received(datagram); }, {});
  for (std::size_t host = 1; host < hosts_.size(); ++host) {
    hosts_[host]->port().set_witnesses(
        [this, host](auto datagram) { on_sender_received(host - 1, datagram); },
        [this](auto datagram) { on_sender_sent(datagram); });
  }
}

void GradplanePush::begin(std::size_t sender, std::uint32_t round) {
  if (expected_of_ != round || missing_.empty()) {
    expected_of_ = round;
    missing_.assign(scenario_.senders, blocks_);
    has_block_.assign(scenario_.senders, std::vector<bool>(blocks_));
    for (std::uint32_t e = 0; e < expected_.size(); ++e) {
      double sum = 0;
      for (std::uint32_t rank = 0; rank < scenario_.senders; ++rank) {
        sum += sim::contribution(round, rank, e);
      }
      expected_[e] = static_cast<float>(sum);
    }
  }
  hosts_[sender + 1]->submit(round, expected_);
}

void GradplanePush::on_root_received(std::span<const std::byte> datagram) {
  const auto packet = testing::see(datagram);
  if (!packet || packet->type != wire::PacketType::kPush) return;
  const std::size_t sender = packet->sender - 1U;
  if (packet->round != expected_of_ || missing_[sender] == 0) return;
  auto has = has_block_[sender][packet->block];
  if (has) return;
  has = true;
  if (--missing_[sender] == 0) rounds_->on_pushed(sender);
}

void GradplanePush::on_sender_received(std::size_t sender, std::span<const std::byte> datagram) {
  const auto packet = testing::see(datagram);
  if (!packet || packet->type != wire::PacketType::kPushAck) return;
  marks_heard_[sender] = std::max(marks_heard_[sender], packet->ack.marked_packets);
}

void GradplanePush::on_sender_sent(std::span<const std::byte> datagram) {
  const auto packet = testing::see(datagram);
  if (packet && packet->type == wire::PacketType::kPush) {
    sent_bytes_ += packet->payload.size();
  }
}

void GradplanePush::report(Outcome& outcome) const {
  for (const auto& host : hosts_) {
    if (outcome.failure.empty()) outcome.failure = host->failure();
  }
  outcome.marks_heard = std::accumulate(marks_heard_.begin(), marks_heard_.end(), std::uint64_t{0});
  outcome.needed_bytes = scenario_.push_bytes * scenario_.senders * outcome.rounds.size();
  if (sent_bytes_ > outcome.needed_bytes) {
    outcome.repeated_bytes = sent_bytes_ - outcome.needed_bytes;
  }
}

}  // namespace gradplane::ns3_incast
