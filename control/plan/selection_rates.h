// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <span>
#include <vector>

#include "control/plan/selection_online.h"

namespace gradplane::plan {

/// How long each multicast takes to reach its `receivers`, in seconds, if all share the links
/// fairly (max-min) and no rate rises when another multicast ends. With replication in the network
/// a multicast has the rate of its slowest receiver.
std::vector<double> fair_seconds(const SelectionRequest& request,
                                 std::span<const Multicast> multicasts,
                                 std::span<const Bitmap> receivers);

}  // namespace gradplane::plan
