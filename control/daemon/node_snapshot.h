// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <memory>
#include <vector>

#include "dataplane/api/snapshot.h"
#include "dataplane/hop/counters.h"

namespace gradplane::daemon {

/// Adds the counters of one core's part of a job. A round and its bytes count once, however many
/// cores share them.
void add_part(hop::Counters& sum, const hop::Counters& part);

/// Adds a core's snapshot to one of the whole node, in which each job and each peer stands once.
/// Links are left out, because LinkTable joins what the cores have measured of them.
void add_core(api::EngineSnapshot& sum, const api::EngineSnapshot& core);

}  // namespace gradplane::daemon
