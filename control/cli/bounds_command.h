// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <string>

namespace gradplane::cli {

struct BoundsOptions {
  std::string socket_path;
  /// As `gradplane status` prints it: hex digits. Empty: all jobs.
  std::string job;
  bool json = false;
};

/// Asks the daemon for the loss bounds in force and prints them. Returns an exit code.
int show_bounds(const BoundsOptions& options);

}  // namespace gradplane::cli
