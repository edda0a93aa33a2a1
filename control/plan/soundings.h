// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "control/plan/network.h"
#include "dataplane/api/plan.h"
#include "dataplane/base/result.h"

namespace gradplane::plan {

/// Gives a valid plan its soundings in place of those that it may have: one for each direction of a
/// link of the network that no tree uses, between one member at each of its ends. A tree uses a
/// link when packets between two neighbours take this link alone. Of the members at a site, the
/// first that has a neighbour at another site sends and gets the soundings. Without links there are
/// none. Where there are more than kMaxSoundings, or a member has more than kMaxSoundedPeers, the
/// members take turns, and each prefers those that the fewest sound.
void add_soundings(api::Plan& plan, const Network& network);

/// Whether the soundings of a plan whose members are valid connect two different members, each two
/// once, and not too many.
Status validate_soundings(const api::Plan& plan);

}  // namespace gradplane::plan
