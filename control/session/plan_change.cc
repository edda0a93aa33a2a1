// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/plan_change.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "dataplane/base/assert.h"

namespace gradplane::session {
namespace {

/// Whether round `a` comes after `b`. Round numbers wrap around 2^32.
bool is_after(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) > 0;
}

}  // namespace

PlanChange::PlanChange(api::Plan plan, const std::vector<api::Member>& from, Instant answer_by)
    : plan_(std::move(plan)), answer_by_(answer_by) {
  for (const api::Member& member : from) {
    from_.insert(member.node);
    if (!member.ranks.empty()) awaited_with_ranks_.insert(member.node);
  }
  std::set<api::NodeId> with_ranks;
  for (const api::Member& member : plan_.members) {
    members_.insert(member.node);
    if (!member.ranks.empty()) with_ranks.insert(member.node);
  }
  takes_ranks_out_ = !std::includes(with_ranks.begin(), with_ranks.end(),
                                    awaited_with_ranks_.begin(), awaited_with_ranks_.end());
  nodes_ = members_;
  nodes_.insert(from_.begin(), from_.end());
  awaited_ = nodes_;
}

bool PlanChange::on_prepared(api::NodeId node, std::optional<std::uint32_t> horizon) {
  if (committed_ || awaited_.erase(node) == 0) return false;
  if (horizon && (!latest_horizon_ || is_after(*horizon, *latest_horizon_)))
    latest_horizon_ = horizon;
  return true;
}

void PlanChange::commit() {
  GP_ASSERT(may_commit());
  committed_ = true;
  if (latest_horizon_) plan_.activation_round = *latest_horizon_;
  awaited_ = from_;
}

void PlanChange::resume(const std::set<api::NodeId>& awaited) {
  committed_ = true;
  awaited_ = awaited;
  std::erase_if(awaited_with_ranks_, [&](api::NodeId node) { return !awaited.contains(node); });
}

bool PlanChange::on_ended(api::NodeId node) {
  if (!committed_ || awaited_.erase(node) == 0) return false;
  awaited_with_ranks_.erase(node);
  return true;
}

bool PlanChange::take_ended_with_ranks() {
  if (!committed_ || begins_job() || !awaited_with_ranks_.empty()) return false;
  return !std::exchange(ended_with_ranks_, true);
}

std::vector<api::NodeId> PlanChange::leaving() const {
  std::vector<api::NodeId> nodes;
  std::set_difference(from_.begin(), from_.end(), members_.begin(), members_.end(),
                      std::back_inserter(nodes));
  return nodes;
}

}  // namespace gradplane::session
