// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/job/plan_table.h"

#include <algorithm>
#include <utility>

#include "dataplane/base/assert.h"

namespace gradplane::job {

Plan* PlanTable::find(std::uint32_t epoch) const {
  for (const auto& plan : live()) {
    if (static_cast<std::uint16_t>(plan->epoch() - epoch) == 0) return plan.get();
  }
  return nullptr;
}

PlanRefusal PlanTable::refusal_of(const Plan& plan) const {
  if (live_ == kMaxLivePlans || is_joining()) return PlanRefusal::kTooMany;
  return aggregate::is_older(newest().epoch(), plan.epoch()) ? PlanRefusal::kNone
                                                             : PlanRefusal::kNotNewer;
}

void PlanTable::prepare(std::unique_ptr<Plan> plan, std::uint32_t horizon) {
  GP_ASSERT(phase_ == Phase::kOne && refusal_of(*plan) == PlanRefusal::kNone);
  plan->follow(newest());
  plans_[live_++] = std::move(plan);
  horizon_ = horizon;
  phase_ = Phase::kPrepared;
}

bool PlanTable::have_same_ranks() const {
  const auto all = live();
  return std::all_of(all.begin(), all.end(), [&](const std::unique_ptr<Plan>& plan) {
    return plan->has_all_ranks() && plan->world_size() == all[0]->world_size();
  });
}

bool PlanTable::commit(std::uint32_t epoch, std::uint32_t activation) {
  if (is_joining() && plans_[0]->epoch() == epoch) {
    plans_[0]->activate(activation);
    phase_ = Phase::kOne;
    return true;
  }
  if (phase_ != Phase::kPrepared || plans_[1]->epoch() != epoch) return false;
  activation_ = activation;
  plans_[1]->activate(activation);
  phase_ = Phase::kCommitted;
  return true;
}

std::unique_ptr<Plan> PlanTable::abort(std::uint32_t epoch) {
  if (phase_ != Phase::kPrepared || plans_[1]->epoch() != epoch) return nullptr;
  phase_ = Phase::kOne;
  --live_;
  return std::move(plans_[1]);
}

std::unique_ptr<Plan> PlanTable::retire() {
  GP_ASSERT(is_switching());
  phase_ = Phase::kOne;
  --live_;
  return std::exchange(plans_[0], std::move(plans_[1]));
}

}  // namespace gradplane::job
