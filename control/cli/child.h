// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>
#include <vector>

#include "control/cli/environment.h"

namespace gradplane::cli {

/// That of this process.
Environment own_environment();

/// Becomes the command. Returns, with the exit code to use, only when it cannot.
int exec_command(const std::vector<std::string>& command, const Environment& environment);

/// How a command ended.
struct ChildEnd {
  int exit_code = 0;  // of the command, or one of exit_codes.h
  int signal = 0;     // that ended the command; 0: none
};

/// Runs the command as a child and waits for its end, passing on the signals that are sent to this
/// process. Signals that the terminal sends reach the child by themselves.
ChildEnd run_child(const std::vector<std::string>& command, const Environment& environment);

/// Ends this process as the child ended, so that a caller sees no difference.
[[noreturn]] void end_like(const ChildEnd& end);

}  // namespace gradplane::cli
