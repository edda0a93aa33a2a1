// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/redrawn.h"
#include "tests/sim/wan.h"

namespace gradplane::sim {

/// `simulate changing`: one long all_reduce by whole daemons over NetStorm's network, whose rates
/// are redrawn again and again. It compares the time with that of an oracle, which reaches the
/// packing bound of each draw from its first moment on.
class ChangingCommand {
 public:
  explicit ChangingCommand(CLI::App& app);
  bool is_asked() const { return command_->parsed(); }
  /// Returns whether all sums were right and the time was within `at_most_`.
  bool run(std::uint64_t seed) const;

  /// The network's state from one redraw to the next.
  struct Draw {
    double from_s = 0;
    double bound_s_per_byte = 0;  // packing bound of an all_reduce; no plan of trees is faster
  };

 private:
  std::vector<Draw> add_draws(RedrawnScenario& scenario, const WanLoad& load) const;
  void configure(RedrawnScenario& scenario) const;
  bool report(const RedrawnOutcome& outcome, const std::vector<Draw>& draws) const;

  CLI::App* command_;
  double every_s_ = 18;
  double megabytes_ = 320;
  std::size_t round_kib_ = 256;
  std::string planner_ = "packed";
  std::string controller_ = "delay";
  double scale_ = 1;
  WanPaths paths_;
  bool fixed_ = false;  // keep the first plan
  bool routes_ = false;
  double redraw_every_s_ = 5;
  double at_most_ = 0;  // limit of time over the oracle's time; 0: no limit
};

}  // namespace gradplane::sim
