// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/switch_watch.h"

#include "control/session/plan_codec.h"
#include "tests/support/switch_log.h"

namespace gradplane::sim {

std::string_view switch_phase_name(SwitchPhase phase) {
  constexpr std::array<std::string_view, kSwitchPhases> kNames = {
      "planning", "decided", "preparing", "answering", "prepared", "committing", "committed"};
  return kNames[static_cast<std::size_t>(phase)];
}

SwitchWatch::Struck SwitchWatch::take_strike() {
  const Struck struck = *struck_;
  struck_.reset();
  return struck;
}

void SwitchWatch::come_to(SwitchPhase phase, std::size_t reached) {
  if (!strike_ || strike_->phase != phase || begun_ < strike_->redraw) return;
  const bool is_partial = phase == SwitchPhase::kPreparing || phase == SwitchPhase::kAnswering ||
                          phase == SwitchPhase::kCommitting;
  const auto most = static_cast<double>(nodes_.empty() ? 0 : nodes_.size() - 1);
  if (is_partial && static_cast<double>(reached) < strike_->share * most) return;
  struck_ = {phase, coordinator_};
  strike_.reset();
}

void SwitchWatch::on_order(api::NodeId node, const session::MakePlan& order, Instant now) {
  coordinator_ = node;
  if (!order.input.in_force) return;
  change_ = {};
  change_.ordered_at = now;
  // A planning that keeps the plan in force also counts, because the outcome is not known before.
  if (strike_ && strike_->phase == SwitchPhase::kPlanning && begun_ + 1 >= strike_->redraw) {
    struck_ = {SwitchPhase::kPlanning, node};
    strike_.reset();
  }
}

void SwitchWatch::on_line(api::NodeId node, const std::string& line, Instant now) {
  const auto epoch = testing::change_in(line);
  if (!epoch) return;
  ++begun_;
  coordinator_ = node;
  change_.epoch = *epoch;
  change_.coordinator = node;
  change_.decided_at = now;
  nodes_ = in_force_;
  prepared_.clear();
  ready_.clear();
  committed_.clear();
  come_to(SwitchPhase::kDecided, 0);
}

void SwitchWatch::on_plan(api::NodeId node, const api::Plan& plan) {
  const auto bytes = session::encode_plan(plan);
  if (!bytes.ok()) return fail("a plan that cannot be encoded was prepared");
  const Known& known = plans_.try_emplace(plan.epoch, Known{bytes.value(), plan}).first->second;
  if (known.bytes != bytes.value())
    return fail("epoch " + std::to_string(plan.epoch) + " has two plans");
  std::set<api::NodeId>& members = members_[plan.epoch];
  for (const api::Member& member : plan.members) members.insert(member.node);
  if (in_force_.empty()) tell_(plan.activation_round, known.plan);
  if (in_force_.empty()) in_force_ = members;
  if (plan.epoch != change_.epoch) return;
  nodes_.insert(members.begin(), members.end());
  prepared_.insert(node);
  if (prepared_.size() < nodes_.size()) come_to(SwitchPhase::kPreparing, prepared_.size());
}

void SwitchWatch::on_ready(api::NodeId node, std::uint32_t epoch) {
  if (epoch != change_.epoch) return;
  ready_.insert(node);
  come_to(ready_ == nodes_ ? SwitchPhase::kPrepared : SwitchPhase::kAnswering, ready_.size());
}

void SwitchWatch::on_commit(api::NodeId node, std::uint32_t epoch, std::uint32_t activation,
                            Instant now) {
  const auto [known, is_new] = activations_.try_emplace(epoch, activation);
  if (known->second != activation)
    return fail("I7: epoch " + std::to_string(epoch) + " has two activation rounds");
  if (is_new) tell_(activation, plans_.at(epoch).plan);
  in_force_ = members_[epoch];
  if (epoch != change_.epoch) return;
  if (committed_.empty()) {
    change_.committed_at = now;
    change_.activation_round = activation;
    change_.plan = plans_.at(epoch).plan;
    switches_.push_back(change_);
  }
  committed_.insert(node);
  come_to(committed_ == nodes_ ? SwitchPhase::kCommitted : SwitchPhase::kCommitting,
          committed_.size());
}

void SwitchWatch::fail(std::string what) {
  if (failure_.empty()) failure_ = std::move(what);
}

}  // namespace gradplane::sim
