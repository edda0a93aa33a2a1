// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Changes of a job's plan: hosts join and leave with their ranks.
#include <algorithm>

#include "dataplane/engine/local_plan.h"
#include "tests/sim/life.h"

namespace gradplane::sim {

FlipCoordinator::Actions Life::actions() {
  return {.make_plan = [this](const auto& plan, api::NodeId node,
                              CorePart core) { return plan_for(plan, node, core); },
          .join = [this](const auto& plan, api::NodeId node) { join(plan, node); },
          .begin = [this](api::NodeId node, std::uint32_t first) { begin(node, first); },
          .dismiss = [this](api::NodeId node) { dismiss(node); }};
}

job::PlanConfig Life::plan_for(const api::Plan& plan, api::NodeId node, CorePart core) {
  if (scenario_.multicast && core.index == 0) machines_.hosts[node]->join_groups(plan);
  job::PlanConfig config = engine::local_plan(plan, node, link_rates(scenario_), scenario_.grants,
                                              scenario_.multicast, core);
  config.key = engine::key_of_part(key_of(plan.epoch), core.index);
  return config;
}

/// Now it is known which ranks take part in which rounds.
void Life::on_activation(std::uint32_t first, const api::Plan& before, const api::Plan& plan) {
  checker_.on_plan(first, plan);
  const auto all = static_cast<std::uint32_t>(scenario_.rounds.size());
  for (const std::uint32_t rank : ranks_of(plan)) {
    if (member_with(before, rank) != nullptr) continue;
    progress_.on_rank(all, std::min(first, all), 0);
    completed_[rank] = std::min(first, all);
  }
  for (const api::Member& member : before.members) {
    if (member_of(plan, member.node) != nullptr) continue;
    for (const auto& trainer : machines_.hosts[member.node]->trainers) trainer->end_at(first);
  }
}

void Life::join(const api::Plan& plan, api::NodeId node) {
  Host& host = *machines_.hosts[node];
  if (!host.is_up() || host.has_job()) return fail("a host joins that cannot");
  host.begin_job(scenario_, plan, true, world_, checker_);
  checker_.on_job(node);
  coordinator_.set_host(host);
  for (const api::BucketBounds& bucket : scenario_.tolerance.buckets) install(host, bucket.bucket);
}

void Life::install(Host& host, std::size_t core, std::uint32_t id) {
  auto bucket = host.runtime(core).make_bucket(scenario_.tolerance.bucket(id));
  if (bucket == nullptr) return;  // a bucket of integers, which is always exact
  host.buckets.push_back(std::move(bucket));
  const std::vector<BoundChange>& changes = scenario_.tolerance.changes;
  for (std::size_t c = 0; c < changed_; ++c) {
    if (changes[c].bucket != id) continue;
    host.buckets.back()->set_bound(changes[c].tensor, changes[c].bound);
  }
  api::Command add;
  add.kind = api::Command::Kind::kAddBucket;
  add.job = &host.runtime(core);
  add.bucket = host.buckets.back().get();
  host.command(core, add);
}

void Life::begin(api::NodeId node, std::uint32_t first) {
  const auto all = static_cast<std::uint32_t>(scenario_.rounds.size());
  for (const auto& trainer : machines_.hosts[node]->trainers)
    trainer->begin_at(std::min(scenario_.index_of(first), all));
}

void Life::dismiss(api::NodeId node) {
  Host& host = *machines_.hosts[node];
  for (const auto& trainer : host.trainers) {
    trainer->leave();
    if (trainer->completed() != trainer->end()) fail("a rank left before its last round was done");
  }
  host.leave_job();
}

/// Adds the job's counters on this host to the totals.
void Life::end_job(Host& host) {
  if (!is_lost()) {
    for (std::size_t c = 0; c < host.cores(); ++c)
      outcome_.counters.add(host.runtime(c).job().counters());
    for (const auto& bucket : host.buckets) checker_.add_counts(*bucket);
  }
  host.end_job();
  coordinator_.on_removed(host.node());
}

/// Whether every node has given back the plan before. A node with ranks finds out by itself that
/// the plan has ended, if rounds of the next plan follow.
bool Life::has_ended_plans() const {
  if (scenario_.plan.selections.empty() || !coordinator_.is_ending()) return true;
  return scenario_.index_of(coordinator_.activations().back()) >= scenario_.rounds.size();
}

}  // namespace gradplane::sim
