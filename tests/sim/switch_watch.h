// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/session/actions.h"
#include "dataplane/api/plan.h"
#include "dataplane/base/time.h"

namespace gradplane::sim {

/// How far all nodes together have come with the change to another plan.
enum class SwitchPhase : std::uint8_t {
  kPlanning,    // a planner makes the plan
  kDecided,     // the coordinator has decided and has not sent PREPARE
  kPreparing,   // PREPARE has reached some nodes
  kAnswering,   // some nodes, but not all, are ready
  kPrepared,    // all nodes are ready, and none has received COMMIT
  kCommitting,  // COMMIT has reached some nodes
  kCommitted,   // COMMIT has reached all nodes
  kCount,
};
inline constexpr std::size_t kSwitchPhases = static_cast<std::size_t>(SwitchPhase::kCount);
std::string_view switch_phase_name(SwitchPhase phase);

/// When a misfortune hits the coordinator.
struct Strike {
  SwitchPhase phase = SwitchPhase::kPlanning;
  std::uint32_t redraw = 1;  // number of the redraw in this run, from 1
  double share = 0;          // of the nodes that PREPARE, the answer or COMMIT must have reached
};

/// Follows what all nodes report of plans. Checks that they agree, and recognises the moment of a
/// strike.
class SwitchWatch {
 public:
  /// Called when a plan comes into force, with its first round. The plan is valid as long as the
  /// watch.
  using InForce = std::function<void(std::uint32_t activation, const api::Plan& plan)>;
  explicit SwitchWatch(InForce in_force) : tell_(std::move(in_force)) {}

  void arm(const Strike& strike) { strike_ = strike; }
  /// The strike's moment has come. True until take_strike().
  bool has_struck() const { return struck_.has_value(); }
  struct Struck {
    SwitchPhase phase;
    api::NodeId coordinator;
  };
  Struck take_strike();

  void on_order(api::NodeId node, const session::MakePlan& order, Instant now);
  void on_line(api::NodeId node, const std::string& line, Instant now);
  void on_plan(api::NodeId node, const api::Plan& plan);
  void on_ready(api::NodeId node, std::uint32_t epoch);
  void on_commit(api::NodeId node, std::uint32_t epoch, std::uint32_t activation, Instant now);

  /// A further plan that came into force.
  struct Switch {
    std::uint32_t epoch = 0;
    api::NodeId coordinator = api::kNoNode;  // the node that had it prepared
    Instant ordered_at;                      // when the planner was asked
    Instant decided_at;                      // when the plan was made
    Instant committed_at;                    // when the first node committed
    std::uint32_t activation_round = 0;
    api::Plan plan;
  };
  const std::vector<Switch>& switches() const { return switches_; }
  /// Epochs about which nodes differ; empty: they agree.
  const std::string& failure() const { return failure_; }

 private:
  void come_to(SwitchPhase phase, std::size_t reached);
  void fail(std::string what);

  struct Known {
    std::vector<std::byte> bytes;
    api::Plan plan;
  };

  InForce tell_;
  std::optional<Strike> strike_;
  std::optional<Struck> struck_;
  api::NodeId coordinator_ = api::kNoNode;  // the node that asked for a plan last
  std::uint32_t begun_ = 0;                 // number of redraws
  Switch change_;                           // the newest redraw
  std::set<api::NodeId> nodes_;             // of the newest redraw and of the plan before
  std::set<api::NodeId> in_force_;
  std::set<api::NodeId> prepared_;
  std::set<api::NodeId> ready_;
  std::set<api::NodeId> committed_;
  std::map<std::uint32_t, Known> plans_;                    // by epoch
  std::map<std::uint32_t, std::set<api::NodeId>> members_;  // by epoch
  std::map<std::uint32_t, std::uint32_t> activations_;      // by epoch
  std::vector<Switch> switches_;
  std::string failure_;
};

}  // namespace gradplane::sim
