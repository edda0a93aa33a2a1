// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <utility>

#include "control/plan/planner.h"
#include "control/plan/validate.h"
#include "tests/support/catch.h"

namespace gradplane::testing {

/// The plan for a request that can be met, and its predicted time.
inline plan::PlannedTime planned(const plan::PlanRequest& request) {
  Result<plan::PlannedTime> made = plan::make_predicted_plan(request);
  INFO((made.ok() ? "" : made.error().message));
  REQUIRE(made.ok());
  const Status good = plan::validate(made.value().plan);
  INFO((good.ok() ? "" : good.error().message));
  REQUIRE(good.ok());
  // A time can be predicted only if the network is known.
  REQUIRE(made.value().prediction.has_value() == request.network.has_value());
  return std::move(made.value());
}

}  // namespace gradplane::testing
