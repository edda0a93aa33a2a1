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

/// Whether relays and receivers can rely on the auxiliary routes of a plan whose members and trees
/// are valid: they connect neighbours of some tree, all their nodes are members, none is a circle
/// or longer than kMaxRelays allows, and those of a pair of nodes share no relay.
Status validate_routes(const api::Plan& plan);

}  // namespace gradplane::plan
