// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <memory>
#include <vector>

#include "dataplane/api/snapshot.h"
#include "dataplane/hop/counters.h"

namespace gradplane::daemon {

/// Adds what one core has counted of a job to what others have. A round and its bytes count once,
/// however many cores share them.
void add_part(hop::Counters& sum, const hop::Counters& part);

/// Of all cores of the node, as if one had done it all: counts are added up, a job and a peer stand
/// there once. Links are not in it, because each core measures them for itself.
void add_core(api::EngineSnapshot& sum, const api::EngineSnapshot& core);

}  // namespace gradplane::daemon
