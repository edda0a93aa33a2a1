// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "control/config/config.h"
#include "control/session/actions.h"

namespace gradplane::daemon {

/// The settings of the session, from the configuration. `incarnation` must differ at every start of
/// the daemon, and must not be 0.
session::SessionConfig session_config(const config::Config& config, const config::ClusterKey& key,
                                      std::uint64_t incarnation);

}  // namespace gradplane::daemon
