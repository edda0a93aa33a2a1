// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "dataplane/api/plan.h"
#include "dataplane/base/result.h"

namespace gradplane::session {

/// Encodes a plan for a Prepare, in bits: docs/daemon-link.md. It must be short, because every
/// member gets the whole plan. Returns an error when the result has more than kMaxPlanBytes, when
/// there are too many members, ranks, trees, routes, soundings or selections, when one of these
/// names a node that is no member, or when a selection is not as plan::validate() wants it. The
/// numbers of nodes and ranks are not checked.
Result<std::vector<std::byte>> encode_plan(const api::Plan& plan);

/// Decodes a plan. It checks every bound, and that every node that the plan names is a member.
/// plan::validate() checks the rest.
Result<api::Plan> decode_plan(std::span<const std::byte> bytes);

}  // namespace gradplane::session
