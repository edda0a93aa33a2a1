// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace gradplane::cli {

inline constexpr std::array<std::string_view, 4> kTopologyFormats = {"text", "dot", "svg", "json"};

struct TopologyOptions {
  std::string socket_path = {};
  std::string format = "text";  // one of kTopologyFormats
  bool sites = false;           // draw one place for each site instead of each node
  bool why = false;             // why each job has its plan; text or json
};

/// Prints the measured network and the trees over it, as the daemon on a socket knows them. Returns
/// an exit code.
int show_topology(const TopologyOptions& options);

}  // namespace gradplane::cli
