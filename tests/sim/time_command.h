// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/sim/cluster.h"

namespace gradplane::sim {

/// `simulate time`: runs one operation again and again on one kind of network, and compares its
/// time with its bound (docs/protocol.md, section 9).
class TimeCommand {
 public:
  explicit TimeCommand(CLI::App& app);
  bool is_asked() const { return command_->parsed(); }
  /// Returns whether all sums were right and the time was within the limit.
  bool run(std::uint64_t seed) const;

 private:
  CongestionSettings congestion() const;
  Scenario scenario(std::uint64_t seed) const;
  Operation operation() const;
  double bound_s() const;

  CLI::App* command_;
  std::string plan_ = "sharded";
  std::uint16_t hosts_ = 8;
  double mbit_per_s_ = 200;
  double bytes_ = 1 << 20;
  double delay_us_ = 100;
  double loss_ = 0;
  std::uint32_t rounds_ = 20;
  std::size_t in_flight_ = 1;
  std::size_t queue_bytes_ = 256 << 10;
  std::size_t mark_bytes_ = 0;
  std::string controller_ = "delay";
  std::string operation_ = "all_reduce";
  std::string wire_ = "fp32";
  double may_miss_ = 0;  // the share of a rank's blocks that may be missing
  bool mltcp_ = false;
  bool paced_ = true;
  bool multicast_ = false;
  bool grants_ = false;
  bool parity_ = true;
  double compute_us_ = 0;  // upper limit of a rank's work before each round
  double at_most_ = 0;     // limit of time over the bound; 0: no limit
};

}  // namespace gradplane::sim
