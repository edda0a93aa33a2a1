// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "dataplane/base/time.h"
#include "tests/ns3/scenario.h"

namespace gradplane::ns3_incast {

/// A transport that takes part in rounds.
class Contestant {
 public:
  virtual ~Contestant() = default;
  /// The sender has the data of a round and may send them.
  virtual void begin(std::size_t sender, std::uint32_t round) = 0;
  /// Whether senders receive sums. If so, a round ends with the last of these.
  virtual bool sums() const = 0;
};

/// Begins rounds and notes when they end. Ends the simulation after the last one.
class Rounds {
 public:
  Rounds(const Scenario& scenario, Contestant& contestant);

  /// Schedules the first round.
  void start(Instant first);
  /// The receiver has a sender's whole push.
  void on_pushed(std::size_t sender);
  /// A sender has the sum.
  void on_summed();

  std::uint32_t current() const { return static_cast<std::uint32_t>(done_.size()); }
  const std::vector<Round>& done() const { return done_; }

 private:
  void begin_round();
  void end_if_done();

  const Scenario& scenario_;
  Contestant& contestant_;
  std::mt19937_64 random_;
  Instant begun_;
  std::size_t pushed_ = 0;
  std::size_t summed_ = 0;
  Round round_;
  std::vector<Round> done_;
};

}  // namespace gradplane::ns3_incast
