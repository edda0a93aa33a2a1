// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/refusal_text.h"

#include "tests/support/catch.h"

using namespace gradplane;
using daemon::refusal_text;

namespace {

bool says(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a job that the poll loop does not take is refused with its own reason") {
  CHECK(says(refusal_text(JobRefusal::kTooMany), "jobs, which is the most"));
  CHECK(says(refusal_text(JobRefusal::kSameId), "another job of the same number"));
  CHECK(says(refusal_text(JobRefusal::kNoGrants), "another engine of this node grants"));
  CHECK(says(refusal_text(JobRefusal::kNoRoom), "senders already, which is the most"));
}

TEST_CASE("a plan that the poll loop does not take is refused with its own reason") {
  CHECK(says(refusal_text(PlanRefusal::kTooMany), "still carries rounds of the plan before"));
  CHECK(says(refusal_text(PlanRefusal::kNotNewer), "not newer"));
  CHECK(says(refusal_text(PlanRefusal::kNoRoom), "senders already, which is the most"));
  CHECK(says(refusal_text(PlanRefusal::kNoJob), "the job has ended here"));
  CHECK(says(refusal_text(PlanRefusal::kOtherRanks), "other ranks than it has"));
  CHECK(says(refusal_text(PlanRefusal::kPassed), "has passed the round"));
}
