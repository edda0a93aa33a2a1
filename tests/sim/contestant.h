// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string_view>

#include "tests/sim/incast.h"

namespace gradplane::sim::incast {

/// What may limit senders, by name: "grants"; a controller's name; or "grants+" and a controller's
/// name for both. "+mltcp" at the end of a controller's name decorates it.
inline constexpr std::string_view kContestants =
    "grants, delay, reno, cubic, dctcp, dcqcn, swift, bbr, fixed (a fair share); grants+NAME for "
    "both; NAME+mltcp";

/// False, and nothing is changed, when there is nothing of that name.
[[nodiscard]] bool choose(std::string_view name, Scenario& scenario);

}  // namespace gradplane::sim::incast
