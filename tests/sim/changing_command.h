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
/// are drawn anew again and again, beside an oracle that has the packing bound of each draw from
/// its first moment on.
class ChangingCommand {
 public:
  explicit ChangingCommand(CLI::App& app);
  bool is_asked() const { return command_->parsed(); }
  /// Whether all sums were right, and the time at most what was allowed.
  bool run(std::uint64_t seed) const;

  /// A draw of the network.
  struct Draw {
    double from_s = 0;
    double bound_s_per_byte = 0;  // of an all_reduce; no plan of trees undercuts it
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
  bool fixed_ = false;  // the first plan stays
  bool routes_ = false;
  double redraw_every_s_ = 5;
  double at_most_ = 0;  // over the oracle; 0: whatever it takes
};

}  // namespace gradplane::sim
