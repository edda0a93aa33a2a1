// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>
#include <vector>

#include "control/cli/environment.h"

namespace gradplane::cli {

/// The environment of this process.
Environment own_environment();

/// Replaces this process by the command. Returns only when that fails, with the exit code to use.
int exec_command(const std::vector<std::string>& command, const Environment& environment);

/// How a command ended.
struct ChildEnd {
  int exit_code = 0;  // the command's, or one of exit_codes.h
  int signal = 0;     // the signal that ended the command; 0: none
};

/// Runs the command as a child and waits for its end. Passes on the signals that this process gets,
/// except those of the terminal, which reach the child directly.
ChildEnd run_child(const std::vector<std::string>& command, const Environment& environment);

/// Ends this process as the child ended, so that a caller sees no difference.
[[noreturn]] void end_like(const ChildEnd& end);

}  // namespace gradplane::cli
