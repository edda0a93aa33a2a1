// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/job/plan_switch.h"

#include <algorithm>

namespace gradplane::job {

Prepared PlanSwitch::prepare(std::unique_ptr<Plan>& plan) {
  const PlanRefusal refusal = state_.plans.refusal_of(*plan);
  if (refusal != PlanRefusal::kNone) return {.refusal = refusal};
  if (!plan->suits(state_.ranks.size())) return {.refusal = PlanRefusal::kOtherRanks};
  if (!state_.incoming.reserve(plan->new_peers(state_.peers))) {
    return {.refusal = PlanRefusal::kNoRoom};
  }
  state_.connect(*plan);
  state_.incoming.update(state_.peers);
  add_buckets(*plan);
  horizon_ = state_.next_round - 1 + pace_.most_in(kAgreementTime);
  state_.plans.prepare(std::move(plan), horizon_);
  return {.horizon = horizon_};
}

bool PlanSwitch::commit(std::uint32_t epoch, std::uint32_t activation) {
  if (state_.plans.is_joining()) {
    if (!state_.plans.commit(epoch, activation)) return false;
    state_.begin_at(activation);
    return true;
  }
  if (is_older(activation, horizon_) || !state_.plans.commit(epoch, activation)) return false;
  activation_ = activation;
  return true;
}

void PlanSwitch::tick(Instant now) {
  pace_.look(now, state_.next_round);
  const bool activates = activation_ && is_older(*activation_, state_.next_round);
  const bool of_updates = sends_updates();
  if (activates || of_updates != has_rates_of_updates_) {
    if (activates) activation_.reset();
    has_rates_of_updates_ = of_updates;
    const Plan& plan = activation_ ? *state_.plans.live()[0] : state_.plans.newest();
    plan.apply_rates(state_.peers, of_updates, now);
  }
  if (activates && state_.plans.is_switching()) {
    state_.plans.newest().begin_other_ways(state_.peers, *state_.plans.live()[0]);
  }
}

/// Whether the oldest round that this node still sends is an exchange. If it sends nothing, the
/// answer stays as before.
bool PlanSwitch::sends_updates() const {
  if (!state_.plans.newest().has_selection(0)) return false;
  const auto exchanges = static_cast<std::uint32_t>(
      std::count_if(state_.rounds.begin(), state_.rounds.end(), [](const Round& round) {
        return round.open && round.geometry.operation == Operation::kExchange;
      }));
  if (state_.open_rounds == 0) return has_rates_of_updates_;
  if (exchanges == 0 || exchanges == state_.open_rounds) return exchanges > 0;
  const Round* oldest = nullptr;
  for (const Round& round : state_.rounds) {
    const bool is_older_one = oldest == nullptr || is_older(round.id, oldest->id);
    if (round.open && is_older_one && state_.plan_of(round).sends(round)) oldest = &round;
  }
  if (oldest == nullptr) return has_rates_of_updates_;
  return oldest->geometry.operation == Operation::kExchange;
}

void PlanSwitch::end_older(std::uint32_t epoch) {
  state_.plans.end_hold(epoch);
  older_is_over_ = state_.plans.is_switching() && state_.plans.live()[0]->epoch() == epoch;
}

std::unique_ptr<Plan> PlanSwitch::abort(std::uint32_t epoch) {
  std::unique_ptr<Plan> plan = state_.plans.abort(epoch);
  if (plan == nullptr) return plan;
  disconnect(*plan);
  for (aggregate::Bucket* bucket : state_.buckets) {
    if (bucket != nullptr) bucket->remove_plan(plan->epoch());
  }
  return plan;
}

/// Gives each bucket its part for the plan. The plan brings the parts of buckets that came before
/// it; a later bucket brings its own.
void PlanSwitch::add_buckets(Plan& plan) {
  for (Plan::BucketPart& part : plan.bucket_parts()) {
    part.bucket->keep_only(state_.plans.newest().epoch());
    part.bucket->add_plan(*part.gathers, part.residual);
  }
}

void PlanSwitch::disconnect(Plan& plan) {
  plan.disconnect(state_.peers);
  for (hop::Peer& peer : state_.peers.all()) {
    if (!peer.is_in_use()) state_.soundings.end(peer.flow.sounding());
  }
  state_.incoming.update(state_.peers);
}

/// A node without ranks may never hear of a round that has no block for it. But nobody submits a
/// round before the round kRoundSlots earlier has been completed everywhere.
bool PlanSwitch::older_has_ended() const {
  if (!state_.plans.is_switching() || !state_.plans.live()[0]->acks().empty()) return false;
  const std::uint32_t activation = state_.plans.activation();
  const bool all_others_have_ended =
      older_is_over_ ||
      (state_.ranks.empty() && !is_older(state_.next_round, activation + kRoundSlots));
  if (!older_is_over_ && !state_.plans.live()[0]->has_all_updates()) return false;
  return std::none_of(state_.rounds.begin(), state_.rounds.end(), [&](const Round& round) {
    return is_older(round.id, activation) && (round.open || !all_others_have_ended);
  });
}

void PlanSwitch::retire() {
  const std::uint32_t activation = state_.plans.activation();
  for (Round& round : state_.rounds) {
    while (is_older(round.id, activation)) round.id += kRoundSlots;
  }
  ended_ = state_.plans.retire();
  state_.plans.newest().begin_other_ways(state_.peers, *ended_);
  disconnect(*ended_);
  older_is_over_ = false;
  state_.retired.remember(ended_->epoch(), activation);
}

/// What a bucket has learned of its sources is moved to the plan that stays. That takes up to a
/// millisecond, and a job may have thousands of buckets, so each call handles one bucket and
/// packets get their turn in between.
std::unique_ptr<Plan> PlanSwitch::take_ended() {
  if (ended_ == nullptr && older_has_ended()) retire();
  if (ended_ == nullptr) return nullptr;
  const auto next_from = [this](std::size_t b) {
    while (b < state_.buckets.size() && state_.buckets[b] == nullptr) ++b;
    return b;
  };
  next_bucket_ = next_from(next_bucket_);
  if (next_bucket_ < state_.buckets.size()) {
    state_.buckets[next_bucket_]->remove_plan(ended_->epoch());
    next_bucket_ = next_from(next_bucket_ + 1);
  }
  if (next_bucket_ < state_.buckets.size()) return nullptr;
  next_bucket_ = 0;
  // A bucket that was added meanwhile may still know the plan. For the others this does nothing.
  for (aggregate::Bucket* bucket : state_.buckets)
    if (bucket != nullptr) bucket->remove_plan(ended_->epoch());
  return std::move(ended_);
}

}  // namespace gradplane::job
