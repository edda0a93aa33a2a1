// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <vector>

#include "control/protocol/link_sample.h"
#include "dataplane/api/snapshot.h"

namespace gradplane::daemon {

/// Converts what the engines have measured of links to the node `self` to the samples that nodes
/// send each other.
std::vector<protocol::LinkSample> samples_of(const std::vector<api::LinkSnapshot>& links,
                                             std::uint16_t self);

}  // namespace gradplane::daemon
