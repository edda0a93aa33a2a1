// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gradplane::sim {

/// `simulate grow`: the cost of plans, control traffic, changes of plans and rounds, by number of
/// nodes.
class GrowCommand {
 public:
  explicit GrowCommand(CLI::App& app);
  bool is_asked() const { return command_->parsed(); }
  /// Returns whether all sums were right and all nodes changed to the other plan.
  bool run(std::uint64_t seed) const;

 private:
  bool run_size(std::size_t nodes, std::uint64_t seed) const;

  CLI::App* command_;
  std::vector<std::size_t> nodes_ = {9, 30, 100, 300};
  std::uint32_t rounds_ = 40;
  std::uint32_t blocks_ = 4;
};

}  // namespace gradplane::sim
