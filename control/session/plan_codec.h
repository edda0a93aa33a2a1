// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "dataplane/api/plan.h"
#include "dataplane/base/result.h"

namespace gradplane::session {

/// Encodes a plan for a Prepare, in bits: docs/control-api.md. Every member gets the whole plan, so
/// its bytes count as often as there are members. Returns an error when the result has more than
/// kMaxPlanBytes, or there are more members, ranks, trees, routes, soundings or selections than
/// allowed, or one of these names a node that is no member, or a selection is not as the planner's
/// own check wants it. The numbers of nodes and ranks are not checked.
Result<std::vector<std::byte>> encode_plan(const api::Plan& plan);

/// Decodes a plan. Checks every bound, and that every node that the plan names is a member. The
/// planner's own check decides whether its trees are trees.
Result<api::Plan> decode_plan(std::span<const std::byte> bytes);

}  // namespace gradplane::session
