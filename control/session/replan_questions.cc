// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/replan_questions.h"

#include <algorithm>
#include <utility>

#include "control/session/text.h"

namespace gradplane::session {

Duration prepare_timeout(const SessionConfig& config) {
  constexpr int kSuspicions = 2;
  return config.suspect_after * kSuspicions;
}

Status ReplanQuestions::ask(AskerHandle asker, const protocol::JobKey& key,
                            const PlanChoice& choice, Instant now) {
  if (open_.size() >= kMaxReplanQuestions)
    return Error{"node " + config_.node_names[config_.self] + " has asked for " +
                 std::to_string(open_.size()) + " new plans and waits; try again in a moment"};
  if (++last_ticket_ == 0) ++last_ticket_;
  // As long as the coordinator may take, and suspect_after for the loss of the coordinator.
  open_[last_ticket_] = {
      asker, now + kReplanWait + kPlanningLimit + prepare_timeout(config_) + config_.suspect_after};
  outbox_.tell_coordinator(
      protocol::Replan{key, last_ticket_, choice.kind, choice.roots, choice.without});
  return Nothing{};
}

void ReplanQuestions::on_answer(const protocol::ReplanAnswer& answer) {
  const auto found = open_.find(answer.ticket);
  if (found == open_.end()) return;
  outbox_.act(AnswerReplan{found->second.asker, answer.committed, answer.epoch,
                           answer.activation_round, answer.text});
  open_.erase(found);
}

void ReplanQuestions::on_coordinator_lost(const std::string& reason) {
  for (const auto& [ticket, question] : std::exchange(open_, {}))
    outbox_.act(AnswerReplan{question.asker, false, 0, 0, reason});
}

void ReplanQuestions::tick(Instant now) {
  for (auto it = open_.begin(); it != open_.end();) {
    const auto current = it++;
    if (now < current->second.until) continue;
    outbox_.act(AnswerReplan{current->second.asker, false, 0, 0,
                             node_text(config_, outbox_.coordinator()) +
                                 ", which coordinates the jobs, has not answered; see what "
                                 "gradplane status shows there"});
    open_.erase(current);
  }
}

Instant ReplanQuestions::next_deadline() const {
  Instant deadline = Instant::never();
  for (const auto& [ticket, question] : open_) deadline = std::min(deadline, question.until);
  return deadline;
}

}  // namespace gradplane::session
