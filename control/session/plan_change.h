// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "dataplane/api/plan.h"
#include "dataplane/base/time.h"

namespace gradplane::session {

/// The change of a job to another plan, as its coordinator sees it. Pure.
///
/// Every node with a part in the new plan or in the one before first prepares the new plan, and
/// names its horizon, the first round that it does not open until it hears more. Then the plan is
/// committed, and the latest horizon becomes the activation round. No node can have opened a round
/// from there on, so each round has one plan, and nodes need not stop for the change. At last the
/// last rounds of the plan before end on every node that had a part in it.
class PlanChange {
 public:
  /// `from` are the members of the plan in force; empty when the job begins.
  PlanChange(api::Plan plan, const std::vector<api::Member>& from, Instant answer_by);

  const api::Plan& plan() const { return plan_; }
  std::uint32_t epoch() const { return plan_.epoch; }
  bool begins_job() const { return from_.empty(); }
  const std::set<api::NodeId>& members() const { return members_; }
  /// The nodes with a part in either plan.
  const std::set<api::NodeId>& nodes() const { return nodes_; }
  bool had_part(api::NodeId node) const { return from_.contains(node); }
  /// The nodes with a part only in the plan before.
  std::vector<api::NodeId> leaving() const;
  /// Whether some node has ranks only in the plan before. Then the others hold rounds from the
  /// activation on until they hear that the plan before has ended at all ranks.
  bool takes_ranks_out() const { return takes_ranks_out_; }
  bool committed() const { return committed_; }
  /// Whether the plan is in force and the plan before has ended everywhere.
  bool done() const { return committed_ && awaited_.empty(); }
  /// The nodes that have not answered. After the commit: those where the plan before has not ended.
  const std::set<api::NodeId>& awaited() const { return awaited_; }
  /// When all must have answered.
  Instant answer_by() const { return committed_ ? Instant::never() : answer_by_; }
  std::uint32_t activation_round() const { return plan_.activation_round; }

  /// Takes a node's answer. False: it was not awaited.
  bool on_prepared(api::NodeId node, std::optional<std::uint32_t> horizon);
  bool may_commit() const { return !committed_ && awaited_.empty(); }
  void commit();
  /// Goes on after an earlier coordinator has committed the plan. The plan before has not ended on
  /// the `awaited` nodes.
  void resume(const std::set<api::NodeId>& awaited);
  /// Notes that the plan before has ended on a node. False: that was not awaited.
  bool on_ended(api::NodeId node);
  /// Whether the plan before has ended on every member with ranks, so that the others may need to
  /// hear of it. Returns true only once.
  bool take_ended_with_ranks();

 private:
  api::Plan plan_;
  std::set<api::NodeId> from_;
  std::set<api::NodeId> members_;
  std::set<api::NodeId> nodes_;
  std::set<api::NodeId> awaited_;
  std::set<api::NodeId> awaited_with_ranks_;  // of the plan before, where it has not ended
  std::optional<std::uint32_t> latest_horizon_;
  Instant answer_by_;
  bool takes_ranks_out_ = false;
  bool committed_ = false;
  bool ended_with_ranks_ = false;  // take_ended_with_ranks() has returned true
};

}  // namespace gradplane::session
