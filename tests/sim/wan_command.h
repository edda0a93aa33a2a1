// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/wan.h"

namespace gradplane::sim {

/// `simulate wan`.
class WanCommand {
 public:
  explicit WanCommand(CLI::App& app);
  bool is_asked() const { return command_->parsed(); }
  /// Returns whether all sums were right and the times were within the limits.
  bool run(std::uint64_t seed) const;

 private:
  bool run_case(std::uint64_t seed, double megabytes) const;
  WanLoad load_of(double megabytes) const;

  CLI::App* command_;
  std::vector<double> megabytes_ = {17, 98, 182};
  std::vector<std::string> planners_ = {"star", "sharded", "fapt", "packed", "auto"};
  std::uint32_t all_reduces_ = 2;
  std::uint32_t draws_ = 1;
  WanPaths paths_;
  std::string controller_ = "delay";
  float bound_ = 0;
  double at_most_ = 0;  // limit of the packed plan's time over the bound; 0: no limit
  double needless_at_most_ = 1;
  bool json_ = false;
};

}  // namespace gradplane::sim
