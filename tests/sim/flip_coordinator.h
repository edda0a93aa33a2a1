// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "control/daemon/plan_answers.h"
#include "dataplane/api/commands.h"
#include "dataplane/engine/job_runtime.h"
#include "tests/sim/cluster.h"
#include "tests/sim/dice.h"
#include "tests/sim/host.h"

namespace gradplane::sim {

/// Puts a scenario's further plans in force one after the other, as a job's coordinator does: every
/// node prepares the plan and answers with its horizon, and then all nodes commit to the latest
/// horizon. Messages take random times in both directions. The next plan follows when the older one
/// has ended everywhere and the nodes that it leaves out are gone.
class FlipCoordinator {
 public:
  struct Actions {
    /// A node's configuration for a plan.
    std::function<job::PlanConfig(const api::Plan&, api::NodeId, CorePart)> make_plan;
    /// Gives the job with this plan to a node that does not have it. The node then calls
    /// set_host().
    std::function<void(const api::Plan&, api::NodeId)> join;
    /// The node's ranks begin with this round.
    std::function<void(api::NodeId, std::uint32_t)> begin;
    /// Takes the job from a node. When it is gone, the node calls on_removed().
    std::function<void(api::NodeId)> dismiss;
  };
  FlipCoordinator(const Scenario& scenario, Actions actions);

  /// The node now runs the job.
  void set_host(sim::Host& host) {
    hosts_[host.node()].host = &host;
    hosts_[host.node()].answers = daemon::PlanAnswers(host.cores());
  }
  void on_removed(api::NodeId node);
  /// Delivers the commands that have arrived. Returns whether some host has got one. `completed`:
  /// how many rounds every rank has completed.
  bool step(std::uint32_t completed, Instant now);
  /// When step() has work to do next.
  Instant next_deadline() const;
  /// Returns false if the event is not about a plan.
  bool on_event(std::size_t host, const api::Event& event, Instant now);

  /// The job is lost, so no plan follows. The caller destroys plans that nodes give back.
  void stop();

  bool done() const { return next_ == scenario_.flips.size() && !is_under_way_; }
  /// Some node still has two plans in force, or a node has not left yet.
  bool is_ending() const { return is_under_way_ && activations_.size() > next_; }
  const std::string& failure() const { return failure_; }
  /// The first round of each further plan.
  const std::vector<std::uint32_t>& activations() const { return activations_; }

 private:
  struct Host {
    sim::Host* host = nullptr;
    daemon::PlanAnswers answers{1};
  };
  /// A message to a host or from it, on its way.
  struct Message {
    Instant at;
    std::size_t host = 0;
    enum class Kind : std::uint8_t {
      kPrepare,
      kCommit,
      kEndOlder,
      kDismiss,
      kPrepared,
      kEnded,
    };
    Kind kind = Kind::kPrepare;
    std::uint32_t round = 0;
  };

  const api::Plan& plan() const { return scenario_.flips[next_]; }
  const api::Plan& plan_before() const {
    return next_ == 0 ? scenario_.plan : scenario_.flips[next_ - 1];
  }
  bool joins(std::size_t host) const;
  bool leaves(std::size_t host) const;
  std::size_t count_of_nodes() const;
  void send(std::size_t host, Message::Kind kind, std::uint32_t round, Instant now);
  void send_all(Message::Kind kind, std::uint32_t round, Instant now);
  void arrive(const Message& message, Instant now);
  void on_prepared(const Message& message, Instant now);
  void on_ended(Instant now);
  void end_change();
  void begin_next();
  void command(std::size_t host, api::Command::Kind kind, std::uint32_t round);
  void command(std::size_t host, std::size_t core, api::Command::Kind kind, std::uint32_t round);

  const Scenario& scenario_;
  Actions actions_;
  Dice dice_;
  std::vector<Host> hosts_;  // by node
  std::vector<Message> messages_;
  std::size_t next_ = 0;  // index into scenario_.flips
  bool is_under_way_ = false;
  // The older plan has ended at all nodes; messages about it may be on their way.
  bool has_ended_ = false;
  std::size_t answers_ = 0;
  std::size_t leaving_ = 0;  // nodes that have not left yet
  std::optional<std::uint32_t> latest_horizon_;
  std::vector<std::uint32_t> activations_;
  bool is_stopped_ = false;
  std::string failure_;
};

}  // namespace gradplane::sim
