// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <string>

namespace gradplane::cli {

/// `gradplane flows` prints the last two, `gradplane status` the others.
enum class StatusFormat : std::uint8_t { kText, kJson, kOpenMetrics, kFlows, kFlowsJson };

struct StatusOptions {
  std::string socket_path;
  StatusFormat format = StatusFormat::kText;
  /// Ask again every second until a signal ends the program or nobody reads its output.
  bool watch = false;
};

/// Asks the daemon and prints what it answers. Returns an exit code.
int show_status(const StatusOptions& options);

}  // namespace gradplane::cli
