// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "control/plan/network.h"
#include "dataplane/api/plan.h"

namespace gradplane::plan {

/// A plan with more members gets no routes, because the search looks at all ways over two members.
inline constexpr std::size_t kMaxRoutedMembers = 32;

/// Replaces the auxiliary routes of a valid plan by those that the network has. For each two
/// neighbours in some tree they are the cheapest by 1/rate, at most kMaxRoutes. They avoid what is
/// slowest on the direct way, and share neither a relay nor a link. A plan with a node that is not
/// in the network gets none.
void add_auxiliary_routes(api::Plan& plan, const Network& network);

}  // namespace gradplane::plan
