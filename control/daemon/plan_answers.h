// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "dataplane/api/commands.h"

namespace gradplane::daemon {

/// Joins the answers of the poll cores that share a job to one, because the session knows nothing
/// of cores. Pure; control thread.
class PlanAnswers {
 public:
  explicit PlanAnswers(std::size_t parts) : parts_(parts) {}

  /// Takes a part's event about a plan (kPlanPrepared, kPlanRefused, kPlanReturned) and returns the
  /// event of the whole job. Returns nothing while other parts have still to answer, or when the
  /// answer has been given already. A plan is prepared when all parts have prepared it, and its
  /// horizon is the latest of theirs. It is refused when all have answered and one has refused it.
  /// It has ended when all have given it back.
  std::optional<api::Event> take(const api::Event& event);

 private:
  struct Answers {
    std::size_t prepared = 0;
    std::size_t refused = 0;
    std::size_t returned = 0;
    std::uint32_t horizon = 0;  // the latest of the parts that have prepared it
    std::optional<PlanRefusal> refusal;
    bool is_told = false;  // whether the job's answer has been given
  };
  std::optional<api::Event> on_prepared(const api::Event& event, Answers& answers) const;
  std::optional<api::Event> on_refused(const api::Event& event, Answers& answers) const;
  std::optional<api::Event> answer_of(api::Event event, Answers& answers) const;

  std::size_t parts_;
  std::map<std::uint32_t, Answers> of_epoch_;  // for plans that have not come back
};

}  // namespace gradplane::daemon
