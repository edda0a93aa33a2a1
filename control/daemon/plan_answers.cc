// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/plan_answers.h"

namespace gradplane::daemon {
namespace {

/// Numbers of rounds wrap around.
bool is_later(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) > 0;
}

}  // namespace

std::optional<api::Event> PlanAnswers::take(const api::Event& event) {
  Answers& answers = of_epoch_[event.epoch];
  std::optional<api::Event> told;
  if (event.kind == api::Event::Kind::kPlanPrepared) {
    told = on_prepared(event, answers);
  } else if (event.kind == api::Event::Kind::kPlanRefused) {
    told = on_refused(event, answers);
  } else if (++answers.returned == parts_) {
    told = event;
  }
  // A part that has refused a plan will not give it back.
  if (answers.returned + answers.refused >= parts_) of_epoch_.erase(event.epoch);
  return told;
}

std::optional<api::Event> PlanAnswers::on_prepared(const api::Event& event,
                                                   Answers& answers) const {
  if (answers.prepared++ == 0 || is_later(event.round, answers.horizon))
    answers.horizon = event.round;
  return answer_of(event, answers);
}

std::optional<api::Event> PlanAnswers::on_refused(const api::Event& event, Answers& answers) const {
  ++answers.refused;
  if (answers.refusal) return std::nullopt;
  answers.refusal = event.plan_refusal;
  // If the session has been told that the plan is prepared, one refusal ends the job.
  return answers.is_told ? std::optional(event) : answer_of(event, answers);
}

std::optional<api::Event> PlanAnswers::answer_of(api::Event event, Answers& answers) const {
  if (answers.prepared + answers.refused < parts_) return std::nullopt;
  answers.is_told = true;
  event.plan = nullptr;
  event.kind = answers.refusal ? api::Event::Kind::kPlanRefused : api::Event::Kind::kPlanPrepared;
  event.round = answers.refusal ? 0 : answers.horizon;
  event.plan_refusal = answers.refusal.value_or(PlanRefusal::kNone);
  return event;
}

}  // namespace gradplane::daemon
