// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "control/config/config.h"
#include "control/session/actions.h"

namespace gradplane::daemon {

/// What the session of a daemon with this configuration begins with. `incarnation` is another one
/// at every start of the daemon, and not 0.
session::SessionConfig session_config(const config::Config& config, const config::ClusterKey& key,
                                      std::uint64_t incarnation);

}  // namespace gradplane::daemon
