// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>
#include <vector>

#include "control/cli/child.h"

namespace gradplane::cli {

struct RunOptions {
  std::string socket_path;
  std::string config_path;  // the daemon's, which gives control.socket and ranks.require; or empty
  std::string node;         // as gradplaned --node
  std::string launcher;     // one of kLauncherNames; empty: RANK and the others are set already
  std::string job;          // its name; empty: the script's
  bool require = false;
  bool verify = false;
  bool verbose = false;
  std::vector<std::string> command;  // not empty
};

/// Runs a command with gradplane attached. Without `verify` this process becomes the command, so
/// the function returns only when that fails. With `verify` it returns how the command ended, or
/// kExitNothingCarried.
ChildEnd run_command(RunOptions options);

}  // namespace gradplane::cli
