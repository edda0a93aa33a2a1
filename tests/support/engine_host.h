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

/// A trainer's end of a channel, in this process. `raw` shows the memory itself, to write garbage.
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
  /// The last number of a round's slot.
  float last(std::uint32_t round, std::uint32_t elements) const;
};

struct JobSpec {
  std::uint32_t id = 1;
  api::Plan plan;
  std::size_t block_bytes = kDefaultBlockBytes;
  std::size_t round_bytes = 64 << 10;
  bool authenticate = false;
  bool grants = false;
  bool joins = false;  // a job that runs elsewhere
  CorePart core = {};  // what this engine has of it
  /// Of its local ranks, where other engines of the node have parts, too; none: it makes them.
  std::vector<std::shared_ptr<engine::RankChannel>> channels = {};
};

/// A production engine on a loopback port, its commands and events, its jobs and their trainers.
class EngineHost {
 public:
  /// What stands between the engine and its queue, where something does.
  using Wrap = std::function<std::unique_ptr<port::PortQueue>(port::PortQueue&)>;
  EngineHost(port::LoopbackNetwork& network, std::uint16_t self, const std::vector<Ipv4>& nodes,
             const Wrap& wrap = {});
  /// One of several engines of a node, on a queue of its port. It listens at kFirstUdpPort and the
  /// number of the queue.
  /// `link`: what they lease the node's link from, of this rate.
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
  /// The oldest event; allocates nothing.
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
  explicit EngineCluster(std::uint16_t count);
  EngineHost& host(std::size_t n) { return *hosts_[n]; }
  /// Every engine polls once; a microsecond passes.
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

/// Node 0 is the root; nodes 0..hosts-1 have one rank each.
api::Plan star_of(std::uint16_t hosts);

}  // namespace gradplane::testing
