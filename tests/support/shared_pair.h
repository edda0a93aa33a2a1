// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "tests/support/engine_host.h"
#include "tests/support/rank_rings.h"

namespace gradplane::testing {

/// A few nodes on one loopback network, with one rank each. The engines of a node share one job and
/// the node's link. The caller polls the engines, so each may have its own thread.
class SharedJob {
 public:
  struct Settings {
    std::size_t round_bytes = 64 << 10;
    bool authenticate = false;
    std::uint64_t link_rate = 0;  // of each node, in bit/s; 0: no pacing
  };
  SharedJob(std::uint16_t nodes, std::uint16_t cores, const api::Plan& plan,
            const Settings& settings = {64 << 10, false, 0})
      : cores_(cores), settings_(settings) {
    for (std::uint16_t n = 0; n < nodes; ++n) addresses_.push_back({0x0a000001U + n});
    const port::LoopbackOptions options{
        .steering = {.queue_count = cores, .first_udp_port = EngineHost::kFirstUdpPort}};
    network_ = port::LoopbackNetwork::create(addresses_, options).value();
    for (std::uint16_t n = 0; n < nodes; ++n) add_node(n, plan);
  }

  std::size_t nodes() const { return addresses_.size(); }
  std::uint16_t cores() const { return cores_; }
  EngineHost& engine(std::size_t node, std::size_t core) { return *hosts_[node * cores_ + core]; }
  EngineHost::Job& part(std::size_t node, std::size_t core) {
    return *parts_[node * cores_ + core];
  }

  bool submit(std::size_t node, std::uint32_t round, std::uint32_t elements, float value) {
    std::byte* slot = channels_[node]->channel.slot(round).data();
    for (std::uint32_t e = 0; e < elements; ++e)
      std::memcpy(slot + e * sizeof value, &value, sizeof value);
    return submit_as_it_is(node, round, elements);
  }
  bool submit_as_it_is(std::size_t node, std::uint32_t round, std::uint32_t elements) {
    return rings_[node].push({.round = round,
                              .elements = elements,
                              .element_type = static_cast<std::uint8_t>(ElementType::kFloat32)});
  }
  /// Takes the next round that all cores of a node have completed.
  std::optional<ipc::Completion> take(std::size_t node) {
    ipc::Completion completion;
    return rings_[node].pop(completion) ? std::optional(completion) : std::nullopt;
  }
  /// Whether all elements of a round have this value.
  bool all_are(std::size_t node, std::uint32_t round, std::uint32_t elements, float value) const {
    const std::byte* slot = channels_[node]->channel.slot(round).data();
    for (std::uint32_t e = 0; e < elements; ++e) {
      if (std::memcmp(slot + e * sizeof value, &value, sizeof value) != 0) return false;
    }
    return true;
  }

 private:
  void add_node(std::uint16_t node, const api::Plan& plan) {
    ports_.push_back(std::move(network_->open(addresses_[node]).value()));
    auto channel = ipc::Channel::create(
        {.slot_count = kRoundSlots, .slot_bytes = settings_.round_bytes, .core_count = cores_});
    channels_.push_back(
        std::make_shared<engine::RankChannel>(engine::RankChannel{std::move(channel.value()), {}}));
    rings_.emplace_back(channels_.back()->channel);
    links_.push_back(std::make_unique<engine::SharedLink>(settings_.link_rate, cores_));
    for (std::uint16_t c = 0; c < cores_; ++c) {
      hosts_.push_back(std::make_unique<EngineHost>(*ports_.back(), c, node, addresses_,
                                                    links_.back().get(), settings_.link_rate));
      parts_.push_back(&hosts_.back()->add({.id = 1,
                                            .plan = plan,
                                            .round_bytes = settings_.round_bytes,
                                            .authenticate = settings_.authenticate,
                                            .core = {c, cores_},
                                            .channels = {channels_.back()}}));
    }
  }

  std::uint16_t cores_;
  Settings settings_;
  std::vector<Ipv4> addresses_;
  std::shared_ptr<port::LoopbackNetwork> network_;
  std::vector<std::unique_ptr<port::Port>> ports_;
  std::vector<std::shared_ptr<engine::RankChannel>> channels_;  // by node
  std::vector<RankRings> rings_;                                // by node
  std::vector<std::unique_ptr<engine::SharedLink>> links_;      // by node
  std::vector<std::unique_ptr<EngineHost>> hosts_;              // by node and core
  std::vector<EngineHost::Job*> parts_;                         // by node and core
};

}  // namespace gradplane::testing
