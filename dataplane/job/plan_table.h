// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "dataplane/job/plan.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/refusal.h"

namespace gradplane::job {

/// The live plans of a job at this node, and which rounds each of them carries. What ends a round
/// is decided elsewhere.
///
/// A plan is prepared first. Then it is aborted, or committed with an activation, from which on it
/// carries all rounds. While it is prepared, no round from the horizon on is opened, so that the
/// nodes can choose an activation that none of them has passed.
class PlanTable {
 public:
  /// `joins`: the first plan is only prepared, and no round is opened before its commit.
  PlanTable(std::unique_ptr<Plan> first, bool joins)
      : phase_(joins ? Phase::kJoining : Phase::kOne), plans_{std::move(first), nullptr} {}

  /// In the order of their epochs.
  std::span<const std::unique_ptr<Plan>> live() const { return {plans_.data(), live_}; }
  /// Packets carry the low half of an epoch, so only that half is compared.
  Plan* find(std::uint32_t epoch) const;
  /// The plan that carries a round that is open here, or may be.
  Plan& of(std::uint32_t round) const {
    return *plans_[is_switching() && !aggregate::is_older(round, activation_) ? 1 : 0];
  }
  /// The plan that carries all rounds from some round on.
  Plan& newest() const { return *plans_[is_switching() ? 1 : 0]; }
  bool may_open(std::uint32_t round) const {
    if (phase_ == Phase::kJoining) return false;
    return phase_ != Phase::kPrepared || aggregate::is_older(round, horizon_);
  }
  /// Whether ranks of this node may submit the round. The sum of a round waits for all ranks of its
  /// plan, so no rank gets far ahead of another one of its plan. But ranks that a new plan leaves
  /// out are in no sum from the activation on, and may still lack results of earlier rounds. So
  /// rounds from the activation on are held until the older plan has ended at all its ranks
  /// (end_hold()). It is enough that some node with ranks in both plans holds them, because no sum
  /// is complete without it.
  bool may_submit(std::uint32_t round) const {
    return !held_by_ || aggregate::is_older(round, held_from_);
  }
  /// All nodes with ranks have ended the plan of this epoch.
  void end_hold(std::uint32_t epoch) {
    if (held_by_ == epoch) held_by_.reset();
  }
  /// Whether every plan in use has all ranks of the job.
  bool have_same_ranks() const;
  /// Whether every plan in use has this selection for its exchanges.
  bool have_selection(std::size_t selection) const;
  /// Whether this plan carries the round, so that packets may name both. A prepared plan carries no
  /// round yet.
  bool carries(const Plan& plan, std::uint32_t round) const { return &of(round) == &plan; }
  bool is_prepared(const Plan& plan) const {
    return is_joining() || (phase_ == Phase::kPrepared && plans_[1].get() == &plan);
  }
  bool is_joining() const { return phase_ == Phase::kJoining; }

  PlanRefusal refusal_of(const Plan& plan) const;
  /// Takes a plan whose refusal_of() is kNone. No round from `horizon` on is opened until the plan
  /// is committed or aborted.
  void prepare(std::unique_ptr<Plan> plan, std::uint32_t horizon);
  /// False if no plan of this epoch is prepared.
  [[nodiscard]] bool commit(std::uint32_t epoch, std::uint32_t activation);
  /// Gives the prepared plan of this epoch back; nullptr if there is none.
  std::unique_ptr<Plan> abort(std::uint32_t epoch);
  /// Whether two plans are in use: live()[0] before the activation, live()[1] from it on.
  bool is_switching() const { return phase_ == Phase::kCommitted; }
  std::uint32_t activation() const { return activation_; }
  /// Gives the older plan back. No round before the activation may be open.
  std::unique_ptr<Plan> retire();

 private:
  bool leaves_hosts_out() const;
  std::span<const std::unique_ptr<Plan>> used() const;

  enum class Phase : std::uint8_t { kJoining, kOne, kPrepared, kCommitted };

  Phase phase_;
  std::size_t live_ = 1;
  std::array<std::unique_ptr<Plan>, kMaxLivePlans> plans_;
  std::uint32_t horizon_ = 0;             // kPrepared
  std::uint32_t activation_ = 0;          // kCommitted: the first round of plans_[1]
  std::optional<std::uint32_t> held_by_;  // epoch; see may_submit()
  std::uint32_t held_from_ = 0;
};

}  // namespace gradplane::job
