// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string_view>

#include "tests/sim/incast.h"

namespace gradplane::sim::incast {

/// The names of what may limit senders: "grants", a controller's name, or "grants+" and a
/// controller's name for both. A controller's name may end with "+mltcp".
inline constexpr std::string_view kContestants =
    "grants, delay, reno, cubic, dctcp, dcqcn, swift, bbr, fixed (a fair share); grants+NAME for "
    "both; NAME+mltcp";

/// Returns false, and changes nothing, if there is no such name.
[[nodiscard]] bool choose(std::string_view name, Scenario& scenario);

}  // namespace gradplane::sim::incast
