// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/stream_checker.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tests/sim/trainer.h"

namespace gradplane::sim {

StreamChecker::StreamChecker(const Scenario& scenario, std::uint32_t ranks)
    : scenario_(scenario),
      ranks_(ranks),
      plans_{{0, &scenario.plan}},
      has_exact_(ranks, std::vector<bool>(scenario.rounds.size())),
      step_of_round_(scenario.rounds.size()) {
  for (std::uint32_t r = 0; r < scenario.rounds.size(); ++r) {
    if (!checks(scenario, scenario.rounds[r])) continue;
    std::vector<std::uint32_t>& rounds = rounds_of_bucket_[scenario.rounds[r].bucket];
    step_of_round_[r] = static_cast<std::uint32_t>(rounds.size());
    rounds.push_back(r);
    submitted_[scenario.rounds[r].bucket].resize(ranks);
  }
}

Geometry StreamChecker::geometry_of(std::uint32_t round) const {
  const RoundPlan& plan = scenario_.rounds[round];
  return Geometry::of({plan.type, plan.elements, plan.bucket, plan.operation},
                      scenario_.block_bytes, static_cast<std::uint16_t>(ranks_));
}

/// Whether the plan's selection has `to` as a receiver of `from`. Each member has one rank.
bool StreamChecker::sends(std::uint32_t round, std::uint32_t from, std::uint32_t to) const {
  const api::Plan& plan = plan_of(round);
  const api::Member* sender = member_with(plan, from);
  const api::Member* receiver = member_with(plan, to);
  if (sender == nullptr || receiver == nullptr) return false;
  const auto& selection = plan.selections[scenario_.rounds[round].source];
  const auto& nodes = selection.receivers[static_cast<std::size_t>(sender - plan.members.data())];
  return std::count(nodes.begin(), nodes.end(), receiver->node) > 0;
}

/// Whether the rank takes part in all plans of these rounds.
bool StreamChecker::is_in_all(std::uint32_t first, std::uint32_t last, std::uint32_t rank) const {
  for (auto at = std::prev(plans_.upper_bound(first)); at != plans_.end(); ++at) {
    if (at->first > last) break;
    if (member_with(*at->second, rank) == nullptr) return false;
  }
  return true;
}

/// A rank that joins counts as if it had submitted the rounds before.
void StreamChecker::on_plan(std::uint32_t round, const api::Plan& plan) {
  const api::Plan& before = *plans_.rbegin()->second;
  for (const std::uint32_t rank : ranks_of(plan)) {
    if (member_with(before, rank) != nullptr) continue;
    for (auto& [bucket, steps] : submitted_) {
      const std::vector<std::uint32_t>& rounds = rounds_of_bucket_.at(bucket);
      const auto first = std::lower_bound(rounds.begin(), rounds.end(), round);
      steps[rank] = static_cast<std::uint32_t>(first - rounds.begin());
    }
  }
  plans_.emplace(round, &plan);
}

double StreamChecker::contribution(std::uint32_t round, std::uint32_t rank,
                                   std::uint32_t element) const {
  const std::uint32_t lane = element % geometry_of(round).block_elements % ranks_;
  return lane == rank ? static_cast<double>(std::uint64_t{1} << step_of_round_[round] % kCycle) : 0;
}

void StreamChecker::on_submit(std::uint32_t round, std::uint32_t rank) {
  submitted_[scenario_.rounds[round].bucket][rank] = step_of_round_[round] + 1;
}

std::string StreamChecker::on_result(std::uint32_t round, std::uint32_t rank,
                                     std::span<const std::byte> slot) {
  std::string wrong = check_lag(round, rank);
  if (wrong.empty()) wrong = check_exact(round, rank);
  for (std::uint32_t b = 0; b < geometry_of(round).blocks && wrong.empty(); ++b) {
    for (const Update& update : decode(round, rank, b, slot, wrong)) {
      if (wrong.empty()) wrong = take(round, rank, b, update);
    }
    if (wrong.empty()) wrong = check_age(round, rank, b);
  }
  return wrong;
}

/// Checks the staleness bound: when a rank has a result, no rank is further behind than the bound.
std::string StreamChecker::check_lag(std::uint32_t round, std::uint32_t rank) const {
  const std::uint32_t done = step_of_round_[round] + 1;
  for (const std::uint32_t other : ranks_of(plan_of(round))) {
    const std::uint32_t theirs = submitted_.at(scenario_.rounds[round].bucket)[other];
    if (done <= theirs + scenario_.staleness_steps) continue;
    return "rank " + std::to_string(rank) + " has done " + std::to_string(done) +
           " steps, and rank " + std::to_string(other) + " has come to " + std::to_string(theirs);
  }
  return {};
}

/// Checks that some rank has each exact round that another rank lacks, so that ranks can recover
/// when their daemons are lost.
std::string StreamChecker::check_exact(std::uint32_t round, std::uint32_t rank) const {
  for (std::uint32_t r = 0; r < round; ++r) {
    if (scenario_.rounds[r].operation == Operation::kExchange) continue;
    for (const std::uint32_t other : ranks_of(plan_of(r))) {
      // A rank that has left by then holds up the ranks that stay, but not those that join later.
      if (has_exact_[other][r] || !is_in_all(r, round, rank)) continue;
      return "I6: rank " + std::to_string(rank) + " has this exchange, and rank " +
             std::to_string(other) + " lacks the exact round " + std::to_string(r);
    }
  }
  return {};
}

std::vector<StreamChecker::Update> StreamChecker::decode(std::uint32_t round, std::uint32_t rank,
                                                         std::uint32_t block,
                                                         std::span<const std::byte> slot,
                                                         std::string& wrong) const {
  const Geometry g = geometry_of(round);
  const ElementType type = ElementType::kFloat64;
  const std::byte* at = slot.data() + g.offset_bytes(block);
  const auto value = [&](std::uint32_t e) { return load(type, at + e * element_bytes(type)); };
  // The rank's own update is in the result exactly once.
  const double own = contribution(round, rank, rank);
  const auto world = static_cast<double>(ranks_of(plan_of(round)).size());
  const double count = std::round(own * world / value(rank));
  std::vector<Update> updates;
  double found = 0;
  for (std::uint32_t from = 0; from < ranks_; ++from) {
    const double sum = value(from) * count / world;
    const auto steps = static_cast<std::uint64_t>(std::round(sum));
    if (!(std::abs(sum - std::round(sum)) < 1e-3)) wrong = "I2: a block is no mean of updates";
    found += std::popcount(steps);
    if (from == rank && static_cast<double>(steps) != own) wrong = "I2: its own update is wrong";
    if (from != rank) updates.push_back({from, steps});
  }
  if (found != count) wrong = "I2: a block is not weighed by the number of its updates";
  for (std::uint32_t e = ranks_; e < g.elements_in(block); ++e) {
    if (value(e) != value(e % ranks_)) wrong = "I2: updates differ within a block";
  }
  return updates;
}

std::string StreamChecker::take(std::uint32_t round, std::uint32_t rank, std::uint32_t block,
                                const Update& update) {
  const std::uint16_t bucket = scenario_.rounds[round].bucket;
  const std::vector<std::uint32_t>& rounds = rounds_of_bucket_.at(bucket);
  std::vector<bool>& seen = seen_[{rank, update.from, bucket, block}];
  seen.resize(rounds.size());
  const std::uint32_t step = step_of_round_[round];
  for (std::uint64_t bits = update.steps; bits != 0; bits &= bits - 1) {
    const auto low = static_cast<std::uint32_t>(std::countr_zero(bits));
    // Finds the only step near this one that has this bit.
    const std::uint32_t first = step < kCycle / 2 ? 0 : step - kCycle / 2;
    const std::uint32_t sent = first + (low + kCycle - first % kCycle) % kCycle;
    const std::string what = "I2: the update of rank " + std::to_string(update.from) + " of step " +
                             std::to_string(sent) + " in the result of step " +
                             std::to_string(step);
    if (sent >= rounds.size() || sent > step + scenario_.staleness_steps + 1)
      return what + " comes from too far ahead";
    if (!sends(rounds[sent], update.from, rank)) return what + " was not sent to this rank";
    if (seen[sent]) return what + " has been in an earlier one";
    if (step > sent + scenario_.staleness_steps) return what + " comes too late";
    seen[sent] = true;
  }
  return {};
}

/// If nothing may be missing, every update that is older than the bound must have come.
std::string StreamChecker::check_age(std::uint32_t round, std::uint32_t rank, std::uint32_t block) {
  const std::uint16_t bucket = scenario_.rounds[round].bucket;
  const auto& tensors = scenario_.tolerance.bucket(bucket).tensors;
  const bool is_exact =
      std::all_of(tensors.begin(), tensors.end(), [](const auto& t) { return t.bound == 0; });
  const std::vector<std::uint32_t>& rounds = rounds_of_bucket_.at(bucket);
  if (!is_exact || step_of_round_[round] < scenario_.staleness_steps) return {};
  const std::uint32_t due = step_of_round_[round] - scenario_.staleness_steps;
  for (std::uint32_t from = 0; from < ranks_; ++from) {
    if (from == rank || !sends(rounds[due], from, rank)) continue;
    if (!is_in_all(rounds[due], round, rank)) continue;
    std::vector<bool>& seen = seen_[{rank, from, bucket, block}];
    seen.resize(rounds.size());
    if (!seen[due])
      return "I2: the update of rank " + std::to_string(from) + " of step " + std::to_string(due) +
             " is in no result yet";
  }
  return {};
}

}  // namespace gradplane::sim
