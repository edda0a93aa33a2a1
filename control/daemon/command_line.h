// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

namespace gradplane::daemon {

/// Runs a daemon as its command line says, until SIGTERM or SIGINT. Returns the exit code: 0 after
/// an orderly end, 1 when the daemon cannot start, 2 when the command line or the configuration is
/// wrong. Writes the reason to stderr.
int run(int argc, char** argv);

}  // namespace gradplane::daemon
