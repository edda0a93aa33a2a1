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

/// Plans that carry rounds. A plan that is only prepared may still be aborted, and restricts
/// nothing until it is committed.
std::span<const std::unique_ptr<Plan>> PlanTable::used() const {
  return live().first(phase_ == Phase::kPrepared ? 1 : live_);
}

bool PlanTable::have_selection(std::size_t selection) const {
  const auto all = used();
  return std::all_of(all.begin(), all.end(),
                     [=](const auto& plan) { return plan->has_selection(selection); });
}

bool PlanTable::have_same_ranks() const {
  const auto all = used();
  return std::all_of(all.begin(), all.end(), [&](const std::unique_ptr<Plan>& plan) {
    return plan->has_all_ranks() && plan->world_size() == all[0]->world_size();
  });
}

bool PlanTable::leaves_hosts_out() const {
  const aggregate::HostTable& before = plans_[0]->hosts();
  const aggregate::HostTable& after = plans_[1]->hosts();
  // Index into `after` of the next host, if both plans list their hosts in the same order.
  std::size_t next = 0;
  for (std::size_t h = 0; h < before.size(); ++h) {
    std::size_t tries = 0;
    while (tries < after.size() && after[(next + tries) % after.size()].node != before[h].node) {
      ++tries;
    }
    if (tries == after.size()) return true;
    next += tries + 1;
  }
  return false;
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
  if (leaves_hosts_out()) {
    held_by_ = plans_[0]->epoch();
    held_from_ = activation;
  }
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
