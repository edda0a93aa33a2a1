// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <set>
#include <utility>

#include "dataplane/api/plan.h"
#include "dataplane/base/result.h"

namespace gradplane::plan {

using NodePair = std::pair<api::NodeId, api::NodeId>;

/// The neighbours in all trees of a plan, in both directions.
std::set<NodePair> neighbours_in(const api::Plan& plan);

/// Checks the auxiliary routes of a plan whose members and trees are valid. Each connects
/// neighbours of some tree, passes only members, none of them twice, and has at most kMaxRelays
/// relays. The routes of a pair of nodes share no relay.
Status validate_routes(const api::Plan& plan);

}  // namespace gradplane::plan
