// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "dataplane/api/plan.h"
#include "dataplane/engine/engine.h"
#include "dataplane/port/loopback/loopback.h"

namespace gradplane::testing {

/// A trainer's end of a channel, in this process. `channel` gives access to the raw memory, so a
/// test can write garbage.
struct TrainerEnd {
  std::shared_ptr<engine::RankChannel> channel;
  ipc::RingProducer<ipc::Submission> submissions;
  ipc::RingConsumer<ipc::Completion> completions;

  explicit TrainerEnd(std::shared_ptr<engine::RankChannel> c)
      : channel(std::move(c)),
        submissions(channel->channel.submissions()),
        completions(channel->channel.completions()) {}
  /// Fills the slot with `value` and submits `elements` fp32.
  bool submit(std::uint32_t round, std::uint32_t elements, float value);
  /// The value of the last element in a round's slot.
  float last(std::uint32_t round, std::uint32_t elements) const;
};

struct JobSpec {
  std::uint32_t id = 1;
  api::Plan plan;
  std::size_t block_bytes = kDefaultBlockBytes;
  std::size_t round_bytes = 64 << 10;
  bool authenticate = false;
  bool grants = false;
  bool joins = false;  // the job already runs on other nodes
  CorePart core = {};  // the part of the job that this engine carries
  /// The channels of the node's local ranks, if engines of other cores of the node share them.
  /// Empty: add() makes channels.
  std::vector<std::shared_ptr<engine::RankChannel>> channels = {};
};

/// A production engine on a loopback port, its commands and events, its jobs and their trainers.
class EngineHost {
 public:
  /// Wraps the queue that the engine uses, so a test can intercept its packets.
  using Wrap = std::function<std::unique_ptr<port::PortQueue>(port::PortQueue&)>;
  EngineHost(port::LoopbackNetwork& network, std::uint16_t self, const std::vector<Ipv4>& nodes,
             const Wrap& wrap = {}, Instant (*clock)() = nullptr);
  /// One of several engines of a node, on queue `queue` of the node's port. It listens at UDP port
  /// kFirstUdpPort + queue. If `link` is set, the engines lease shares of `bits_per_second` from
  /// it.
  EngineHost(port::Port& port, std::uint16_t queue, std::uint16_t self,
             const std::vector<Ipv4>& nodes, engine::SharedLink* link = nullptr,
             std::uint64_t bits_per_second = 0);
  static constexpr std::uint16_t kFirstUdpPort = 47000;

  struct Job {
    std::unique_ptr<engine::JobRuntime> runtime;
    std::vector<TrainerEnd> trainers;
  };
  /// Builds a job and gives it to the engine.
  Job& add(const JobSpec& spec);
  void command(const api::Command& command);
  std::vector<api::Event> events();
  /// Takes the oldest event without an allocation.
  bool next_event(api::Event& out);
  std::vector<api::JobRoundReport> reports();
  std::unique_ptr<api::EngineSnapshot> snapshot(Instant now);

  engine::Engine& engine() { return *engine_; }
  port::PortQueue& queue() { return *queue_; }

 private:
  void start(std::uint16_t queue, const std::vector<Ipv4>& nodes, engine::EngineOptions options);

  std::uint16_t self_;
  std::unique_ptr<port::Port> port_;
  std::unique_ptr<port::PortQueue> wrapped_;
  port::PortQueue* queue_ = nullptr;
  api::CommandQueue commands_{api::kQueueEntries};
  api::EventQueue events_{api::kQueueEntries};
  api::ReportQueue reports_{api::kReportQueueEntries};
  std::unique_ptr<engine::Engine> engine_;
  std::vector<std::unique_ptr<Job>> jobs_;
};

/// Hosts 0..count-1 on one loopback network, polled in turn.
class EngineCluster {
 public:
  /// `clock` measures the stages of the engines' turns; null: nothing is measured.
  explicit EngineCluster(std::uint16_t count, Instant (*clock)() = nullptr);
  EngineHost& host(std::size_t n) { return *hosts_[n]; }
  /// Polls every engine once, then advances the clock by a microsecond.
  void turn();
  void turns(int count) {
    while (count-- > 0) turn();
  }
  Instant now() const { return now_; }
  port::LoopbackNetwork& network() { return *network_; }
  const std::vector<Ipv4>& nodes() const { return nodes_; }

 private:
  std::vector<Ipv4> nodes_;
  std::shared_ptr<port::LoopbackNetwork> network_;
  std::vector<std::unique_ptr<EngineHost>> hosts_;
  Instant now_ = Instant::from_ns(1'000'000'000);
};

/// A plan in which nodes 0..hosts-1 have one rank each, and node 0 is the root.
api::Plan star_of(std::uint16_t hosts);

}  // namespace gradplane::testing
