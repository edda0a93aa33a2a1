// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "control/plan/network.h"
#include "dataplane/api/plan.h"
#include "dataplane/base/result.h"

namespace gradplane::plan {

/// Replaces the soundings of a valid plan. There is one for each direction of a link that no tree
/// uses, between one member at each end. A tree uses a link when packets between two neighbours
/// take only this link. At each site, the first member that has a neighbour at another site sends
/// and gets the soundings. A network without links has none. If there would be more than
/// kMaxSoundings, or more than kMaxSoundedPeers for a member, the members choose in turn, and each
/// prefers peers that the fewest members sound.
void add_soundings(api::Plan& plan, const Network& network);

/// Checks the soundings of a plan whose members are valid: each connects two different members, no
/// two connect the same ones, and there are not too many.
Status validate_soundings(const api::Plan& plan);

}  // namespace gradplane::plan
