// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>
#include <vector>

namespace gradplane::cli {

struct ReplanOptions {
  std::string socket_path;
  std::string job;   // as `gradplane status` prints it: hex digits
  std::string plan;  // one of kPlanKindNames
  std::vector<std::string> roots;
  std::vector<std::string> without;
};

/// Asks the daemon for another plan for a job that runs, and prints what it answers. Returns an
/// exit code.
int replan(const ReplanOptions& options);

}  // namespace gradplane::cli
