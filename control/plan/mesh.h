// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <optional>
#include <span>

#include "control/plan/network.h"
#include "control/protocol/link_sample.h"

/// Makes networks from samples where no file describes the links. measured.h says how.
namespace gradplane::plan {

/// `start`, which has no links, with each pair of sites as a link. Nothing if no sample has a rate.
std::optional<Network> mesh_shown(const Network& start,
                                  std::span<const protocol::LinkSample> samples);

/// The nodes of `start`. The access of each has the best rates that the node has shown.
std::optional<Network> accesses_shown(const Network& start,
                                      std::span<const protocol::LinkSample> samples);

}  // namespace gradplane::plan
