// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <string>

#include "control/config/config.h"
#include "dataplane/model/stall.h"

namespace gradplane::daemon {

/// Says to people what a round waited for when it was given up, for how long, and what to do.
/// `node` is the node that it waited for.
std::string stall_text(const config::Config& config, std::uint32_t round, std::uint16_t node,
                       const Stall& stall);

}  // namespace gradplane::daemon
