// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataplane/ipc/layout.h"
#include "tests/sim/cluster.h"

namespace gradplane::sim {

/// Checks sums of buckets whose wire types round (Tolerance::rounds_off). A rank contributes the
/// same fractions in each round, so errors that are not carried add up.
///
/// A sum from which no rank is missing differs from the exact one by at most the rounding errors of
/// the nodes that send it. With Compensation::kCarry this also holds for the total of all rounds:
/// delivered + kept = submitted (I5), where what is kept is the error of one round. At the end it
/// holds even if rounds lacked something. The simulation itself checks that replicas have the same
/// bits (I1).
class RoundingChecker {
 public:
  /// `ranks`: the number of ranks of the plan.
  RoundingChecker(const Scenario& scenario, std::uint32_t ranks);

  static bool checks(const Scenario& scenario, const RoundPlan& plan) {
    return scenario.tolerance.rounds_off && plan.bucket != 0 &&
           plan.operation == Operation::kAllReduce;
  }
  /// A value from -1 to 1.
  static double contribution(std::uint32_t rank, std::uint32_t element);
  /// A rank has got a round. Returns what is wrong, or an empty string.
  std::string on_result(std::uint32_t round, const ipc::Completion& completion,
                        std::span<const std::byte> slot);
  /// Checks the totals, when every rank has got every round. Returns as on_result().
  std::string conclude() const;

 private:
  struct Bucket {
    std::vector<double> submitted;  // by element, in one round
    std::vector<double> delivered;  // by element, in all rounds
    std::vector<WireType> wire;
    std::uint32_t rounds = 0;
    bool lacks = false;  // something was missing from some round
  };
  /// The largest rounding error of an element in one round, over all nodes together.
  double most_error(WireType wire) const;
  std::string check(std::size_t bucket, std::uint32_t rounds) const;

  const Scenario& scenario_;
  std::uint32_t ranks_;
  std::vector<Bucket> buckets_;
  std::vector<bool> done_;  // by round
};

/// Makes all rounds of a scenario use one bucket, whose tensor has this wire type.
void narrow_rounds(Scenario& scenario, WireType wire);

}  // namespace gradplane::sim
