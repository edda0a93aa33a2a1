// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <string>

namespace gradplane::cli {

struct RoundsOptions {
  std::string socket_path;
  /// As `gradplane status` prints it: hex digits. Empty: all jobs.
  std::string job;
  /// The largest number of rounds of each job; the newest are shown.
  std::uint32_t last = 20;
  bool json = false;
  /// Go on with new rounds until a signal ends the program or nobody reads its output.
  bool follow = false;
};

/// Asks the daemon for the rounds that it has gathered under loss bounds and prints them. Returns
/// an exit code.
int show_rounds(const RoundsOptions& options);

}  // namespace gradplane::cli
