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

/// What holds for sums of buckets whose wire types round (Tolerance::rounds_off). A rank gives the
/// same fractions in each round, so whatever is rounded off and not carried adds up.
///
/// Each sum that lacks nobody differs from the exact one by what each node that sends it may round
/// off at most. With Compensation::kCarry this holds for the total of all rounds: delivered + kept
/// = submitted (I5), and what is kept is the error of one round. There it holds at the end also
/// where rounds lacked something. That replicas have the same bits (I1) is the simulation's own.
class RoundingChecker {
 public:
  /// `ranks`: of the plan.
  RoundingChecker(const Scenario& scenario, std::uint32_t ranks);

  static bool checks(const Scenario& scenario, const RoundPlan& plan) {
    return scenario.tolerance.rounds_off && plan.bucket != 0 &&
           plan.operation == Operation::kAllReduce;
  }
  /// From -1 to 1.
  static double contribution(std::uint32_t rank, std::uint32_t element);
  /// A rank has got a round. What is wrong with it; empty: nothing.
  std::string on_result(std::uint32_t round, const ipc::Completion& completion,
                        std::span<const std::byte> slot);
  /// When every rank has got every round.
  std::string conclude() const;

 private:
  struct Bucket {
    std::vector<double> submitted;  // by element, in one round
    std::vector<double> delivered;  // in all rounds
    std::vector<WireType> wire;
    std::uint32_t rounds = 0;
    bool lacks = false;  // some round lacked somebody
  };
  /// The most that all nodes together round off an element in one round.
  double most_error(WireType wire) const;
  std::string check(std::size_t bucket, std::uint32_t rounds) const;

  const Scenario& scenario_;
  std::uint32_t ranks_;
  std::vector<Bucket> buckets_;
  std::vector<bool> done_;  // by round
};

/// Makes all rounds of a scenario those of a bucket whose one tensor goes in the wire type.
void narrow_rounds(Scenario& scenario, WireType wire);

}  // namespace gradplane::sim
