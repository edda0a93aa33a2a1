// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "dataplane/model/geometry.h"
#include "tests/sim/cluster.h"

namespace gradplane::sim {

/// Checks exchanges of buckets under bounded staleness. Each result is a mean of the rank's own
/// update and updates that were sent to it. Each update is in at most one result; where nothing may
/// be missing, it is in a result that is at most the staleness bound later. No rank gets further
/// ahead of another rank that takes part in its round.
///
/// A contribution encodes its rank and step: element e of a block belongs to rank e % ranks. That
/// rank writes a power of two there, which stands for the step, and all other ranks write zero. The
/// type is float64.
class StreamChecker {
 public:
  /// `ranks`: the number of ranks in all plans.
  StreamChecker(const Scenario& scenario, std::uint32_t ranks);

  static bool checks(const Scenario& scenario, const RoundPlan& plan) {
    return scenario.staleness_steps > 0 && plan.operation == Operation::kExchange &&
           plan.bucket != 0;
  }
  double contribution(std::uint32_t round, std::uint32_t rank, std::uint32_t element) const;
  /// A further plan is in force from this round on.
  void on_plan(std::uint32_t round, const api::Plan& plan);
  void on_submit(std::uint32_t round, std::uint32_t rank);
  /// A rank has the result of a round that is the same on all ranks.
  void on_exact(std::uint32_t round, std::uint32_t rank) { has_exact_[rank][round] = true; }
  /// Returns what is wrong with a result, or an empty string.
  std::string on_result(std::uint32_t round, std::uint32_t rank, std::span<const std::byte> slot);

 private:
  /// The updates of one rank in one block of a result.
  struct Update {
    std::uint32_t from = 0;
    std::uint64_t steps = 0;  // one bit for each step, at step % kCycle
  };
  static constexpr std::uint32_t kCycle = 32;

  Geometry geometry_of(std::uint32_t round) const;
  const api::Plan& plan_of(std::uint32_t round) const {
    return *std::prev(plans_.upper_bound(round))->second;
  }
  bool is_in_all(std::uint32_t first, std::uint32_t last, std::uint32_t rank) const;
  std::vector<Update> decode(std::uint32_t round, std::uint32_t rank, std::uint32_t block,
                             std::span<const std::byte> slot, std::string& wrong) const;
  std::string take(std::uint32_t round, std::uint32_t rank, std::uint32_t block,
                   const Update& update);
  std::string check_lag(std::uint32_t round, std::uint32_t rank) const;
  std::string check_exact(std::uint32_t round, std::uint32_t rank) const;
  std::string check_age(std::uint32_t round, std::uint32_t rank, std::uint32_t block);
  bool sends(std::uint32_t round, std::uint32_t from, std::uint32_t to) const;

  const Scenario& scenario_;
  std::uint32_t ranks_;
  std::map<std::uint32_t, const api::Plan*> plans_;  // by first round
  std::vector<std::vector<bool>> has_exact_;         // by rank and round
  std::vector<std::uint32_t> step_of_round_;         // a round's step of its bucket
  std::map<std::uint16_t, std::vector<std::uint32_t>> rounds_of_bucket_;  // by bucket, then by step
  // By bucket, then by rank: the number of steps.
  std::map<std::uint16_t, std::vector<std::uint32_t>> submitted_;
  /// By receiver, sender, bucket and block: the steps whose update has been in a result.
  using Place = std::tuple<std::uint32_t, std::uint32_t, std::uint16_t, std::uint32_t>;
  std::map<Place, std::vector<bool>> seen_;
};

}  // namespace gradplane::sim
