// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>

#include "dataplane/base/result.h"
#include "dataplane/base/time.h"

namespace gradplane::cli {

/// How long the daemon may take for each answer.
inline constexpr Duration kDaemonTimeout = Duration::seconds(3);

/// Asks the daemon on a control socket for its status: the text of a JSON object. The error says
/// which socket, why, and what to do.
Result<std::string> fetch_status(const std::string& socket_path);

/// GRADPLANE_SOCKET of the environment, else where the daemon listens by default.
std::string default_socket_path();

}  // namespace gradplane::cli
