// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// What a node tells a node that begins to coordinate.
#include "control/session/member.h"
#include "control/session/text.h"

namespace gradplane::session {

void Member::on_new_term() {
  coordinator_trouble_.clear();
  for (auto& [key, job] : jobs_) {
    job.described = 0;
    job.sends_back.reset();
    // Only complete tables are kept: no other node may have the rest of an incomplete one.
    job.bounds.drop_open();
    job.open_parts.clear();
    if (job.state == JobState::kWaiting)
      send_join(job, ranks_of(job));
    else
      report(job);
  }
  questions_.on_coordinator_lost(node_text(config_, outbox_.coordinator()) +
                                 " coordinates from now on, and does not know this question; ask "
                                 "again, after a look at what gradplane status shows");
}

void Member::report(const Job& job) {
  protocol::Report report;
  report.key = job.key;
  report.first_epoch = job.first_epoch;
  report.epoch = job.epoch;
  report.activation_round = job.activation_round;
  report.next_epoch = job.next ? job.next->epoch : 0;
  report.ending = job.ending != 0;
  const bool needed = job.ending != 0 || (job.epoch != 0 && !job.has_part);
  report.epoch_before = needed ? job.plan_before_epoch : job.epoch_before;
  report.has_part = job.has_part;
  report.newest_epoch = job.newest_epoch;
  report.attempt = job.attempt;
  report.user = job.user;
  report.world_size = job.world_size;
  report.table_parts = static_cast<std::uint32_t>(job.bound_parts.size());
  report.label = job.label;
  report.grants = job.grants;
  outbox_.tell_coordinator(std::move(report));
  for (const Gone& gone : job.gone)
    outbox_.tell_coordinator(protocol::Leave{job.key, job.first_epoch, gone.rank, gone.clean});
}

void Member::on(const protocol::AskReport& m) {
  const auto found = find(m.key, m.first_epoch);
  if (found != jobs_.end()) {
    report(found->second);
    return;
  }
  protocol::Report nothing;
  nothing.key = m.key;
  nothing.first_epoch = m.first_epoch;
  outbox_.tell_coordinator(std::move(nothing));
}

void Member::on(const protocol::AskPlan& m) {
  const auto found = find(m.key, m.first_epoch);
  if (found == jobs_.end()) return;  // the job has ended since, and the coordinator was told
  const Job& job = found->second;
  protocol::PlanIs answer{m.key, m.first_epoch, m.epoch, {}};
  if (m.epoch == job.epoch) answer.plan = job.plan;
  if (m.epoch == job.plan_before_epoch && answer.plan.empty()) answer.plan = job.plan_before;
  if (job.next && m.epoch == job.next->epoch) answer.plan = job.next->plan;
  if (!answer.plan.empty()) outbox_.tell_coordinator(std::move(answer));
}

void Member::on(const protocol::AskTables& m) {
  const auto found = find(m.key, m.first_epoch);
  if (found != jobs_.end()) found->second.sends_back = 0;
}

}  // namespace gradplane::session
