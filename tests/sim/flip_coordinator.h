// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/api/commands.h"
#include "dataplane/engine/job_runtime.h"
#include "tests/sim/cluster.h"
#include "tests/sim/dice.h"

namespace gradplane::sim {

/// Puts the further plans of a scenario in force, one after the other, as the coordinator of a job
/// does: every node prepares the plan and names its horizon, then all commit to the latest one.
/// Messages take random times in both directions. The next plan follows when the older one has
/// ended everywhere.
class FlipCoordinator {
 public:
  using MakePlan = std::function<job::PlanConfig(const api::Plan&, api::NodeId)>;
  FlipCoordinator(const Scenario& scenario, MakePlan make_plan);

  void add_host(engine::JobRuntime& runtime, api::CommandQueue& commands) {
    hosts_.push_back({&runtime, &commands});
  }
  /// Hands over the commands that have arrived. True when some host has one. `completed`: the
  /// rounds that every rank has completed.
  bool step(std::uint32_t completed, Instant now);
  /// When step() has something to do.
  Instant next_deadline() const;
  /// False: the event is not about a plan.
  bool on_event(std::size_t host, const api::Event& event, Instant now);

  /// The job is lost: no plan follows. What comes back from the nodes is theirs to destroy.
  void stop();

  bool done() const { return next_ == scenario_.flips.size() && !is_under_way_; }
  const std::string& failure() const { return failure_; }
  /// The first round of each further plan.
  const std::vector<std::uint32_t>& activations() const { return activations_; }

 private:
  struct Host {
    engine::JobRuntime* runtime = nullptr;
    api::CommandQueue* commands = nullptr;
  };
  /// A message on its way, to a host or from it.
  struct Message {
    Instant at;
    std::size_t host = 0;
    enum class Kind : std::uint8_t { kPrepare, kCommit, kPrepared, kEnded };
    Kind kind = Kind::kPrepare;
    std::uint32_t round = 0;
  };

  void send(std::size_t host, Message::Kind kind, std::uint32_t round, Instant now);
  void send_all(Message::Kind kind, std::uint32_t round, Instant now);
  void arrive(const Message& message, Instant now);
  void command(std::size_t host, api::Command::Kind kind, std::uint32_t round);
  std::uint32_t epoch() const { return scenario_.flips[next_].epoch; }

  const Scenario& scenario_;
  MakePlan make_plan_;
  Dice dice_;
  std::vector<Host> hosts_;
  std::vector<Message> messages_;
  std::size_t next_ = 0;  // of scenario_.flips
  bool is_under_way_ = false;
  std::size_t answers_ = 0;
  std::optional<std::uint32_t> latest_horizon_;
  std::vector<std::uint32_t> activations_;
  bool is_stopped_ = false;
  std::string failure_;
};

}  // namespace gradplane::sim
