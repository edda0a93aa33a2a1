// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>
#include <vector>

#include "control/cli/child.h"

namespace gradplane::cli {

struct RunOptions {
  std::string socket_path;
  std::string config_path;  // of the daemon; empty: none. Its control.socket and ranks.require hold
  std::string node;         // as gradplaned --node
  std::string launcher;     // one of kLauncherNames; empty: the ranks have their variables
  std::string job;          // its name; empty: the script's
  bool require = false;
  bool verify = false;
  bool verbose = false;
  std::vector<std::string> command;  // not empty
};

/// Runs a command with gradplane attached. Without `verify` it becomes the command and returns only
/// when that fails; with it, returns how the command ended, or kExitNothingCarried.
ChildEnd run_command(RunOptions options);

}  // namespace gradplane::cli
