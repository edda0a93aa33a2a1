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

/// A plan on its way into force, as its coordinator sees it. Pure.
///
/// Every node that has a part in the new plan or in the one before first prepares, and names its
/// horizon: a round from which on it opens none until it hears more. Then the plan is committed for
/// the latest horizon. Nobody can have opened a round from there on, so each round has one plan,
/// and no node waits for another one. In the end the last rounds of the plan before end on every
/// node that had it.
class PlanChange {
 public:
  /// `from`: the members of the plan in force; none when the job only begins.
  PlanChange(api::Plan plan, const std::vector<api::Member>& from, Instant answer_by);

  const api::Plan& plan() const { return plan_; }
  std::uint32_t epoch() const { return plan_.epoch; }
  bool begins_job() const { return from_.empty(); }
  const std::set<api::NodeId>& members() const { return members_; }
  /// Those with a part in either plan.
  const std::set<api::NodeId>& nodes() const { return nodes_; }
  bool had_part(api::NodeId node) const { return from_.contains(node); }
  /// Those with a part in the plan before only.
  std::vector<api::NodeId> leaving() const;
  /// Some node has ranks in the plan before only. The others hold their rounds from the activation
  /// on until they hear that the plan before has ended at all ranks.
  bool takes_ranks_out() const { return takes_ranks_out_; }
  bool committed() const { return committed_; }
  /// In force, and the plan before has ended everywhere.
  bool done() const { return committed_ && awaited_.empty(); }
  /// Who has not answered; when it is committed, where the plan before has not ended.
  const std::set<api::NodeId>& awaited() const { return awaited_; }
  /// When all must have answered.
  Instant answer_by() const { return committed_ ? Instant::never() : answer_by_; }
  std::uint32_t activation_round() const { return plan_.activation_round; }

  /// False: this answer was not awaited.
  bool on_prepared(api::NodeId node, std::optional<std::uint32_t> horizon);
  bool may_commit() const { return !committed_ && awaited_.empty(); }
  void commit();
  /// It was committed by an earlier coordinator, and the plan before has not ended on these nodes.
  void resume(const std::set<api::NodeId>& awaited);
  /// False: this answer was not awaited.
  bool on_ended(api::NodeId node);
  /// Whether the plan before has ended on every member with ranks. The others may need to hear of
  /// it. True once.
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
  bool ended_with_ranks_ = false;  // told
};

}  // namespace gradplane::session
