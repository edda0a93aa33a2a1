// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "dataplane/api/commands.h"

namespace gradplane::daemon {

/// The poll cores that share a job answer each for themselves. This makes one answer of theirs: the
/// session knows nothing of cores. Pure; control thread.
class PlanAnswers {
 public:
  explicit PlanAnswers(std::size_t parts) : parts_(parts) {}

  /// What an event about a plan (kPlanPrepared, kPlanRefused, kPlanReturned) of a part says of the
  /// job. Nothing: others have still to answer, or their answer has been told. A plan is prepared
  /// when all have prepared it, for rounds from the latest horizon on, and has ended when it has
  /// come back from all. It is refused when one has refused it and all have answered.
  std::optional<api::Event> take(const api::Event& event);

 private:
  struct Answers {
    std::size_t prepared = 0;
    std::size_t refused = 0;
    std::size_t returned = 0;
    std::uint32_t horizon = 0;  // of those that have prepared it
    std::optional<PlanRefusal> refusal;
    bool is_told = false;  // that it is prepared
  };
  std::optional<api::Event> on_prepared(const api::Event& event, Answers& answers) const;
  std::optional<api::Event> on_refused(const api::Event& event, Answers& answers) const;
  std::optional<api::Event> answer_of(api::Event event, Answers& answers) const;

  std::size_t parts_;
  std::map<std::uint32_t, Answers> of_epoch_;  // of plans that have not come back
};

}  // namespace gradplane::daemon
