// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "dataplane/api/plan.h"
#include "dataplane/base/result.h"

namespace gradplane::session {

/// A plan as bytes for a Prepare. Parents go as runs of equal ones where that is shorter, so that a
/// plan of stars stays small at any number of members. An Error when it has more than kMaxPlanBytes
/// or breaks a bound of limits.h.
Result<std::vector<std::byte>> encode_plan(const api::Plan& plan);

/// The plan, every bound checked, every node that it names a member. Whether its trees are trees is
/// for the planner's own check.
Result<api::Plan> decode_plan(std::span<const std::byte> bytes);

}  // namespace gradplane::session
