// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <optional>
#include <span>

#include "control/plan/network.h"
#include "control/protocol/link_sample.h"

/// Networks of which nobody has written down the links, from samples. measured.h says what they
/// are.
namespace gradplane::plan {

/// Every pair of sites of `start`, which has no links, as a link. Nothing: no sample says anything
/// of a rate.
std::optional<Network> mesh_shown(const Network& start,
                                  std::span<const protocol::LinkSample> samples);

/// The nodes of `start`, each with the best rates that it has shown as its access.
std::optional<Network> accesses_shown(const Network& start,
                                      std::span<const protocol::LinkSample> samples);

}  // namespace gradplane::plan
