// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "dataplane/engine/job_runtime.h"
#include "tests/sim/cluster.h"
#include "tests/sim/tolerance_checker.h"
#include "tests/support/rank_rings.h"

namespace gradplane::sim {

/// Convert an element of a tensor from and to double. Exact for small integers.
void store(ElementType type, std::byte* at, double value);
double load(ElementType type, const std::byte* at);

/// A rank that does the rounds of a scenario: it computes for a while, writes its contribution into
/// the arena, submits, and checks the sums that it gets.
class Trainer {
 public:
  Trainer(const Scenario& scenario, std::uint32_t rank, std::uint32_t world,
          std::shared_ptr<engine::RankChannel> channel, ToleranceChecker& checker);

  /// Does all work that is due. Returns whether there was some. Sets failure() if a sum is wrong.
  bool step(Instant now);
  Instant next_deadline() const;
  std::uint32_t rank() const { return rank_; }
  /// Lets the rank submit the next closing round, and makes it do so at once.
  void open_gate() {
    ++gate_;
    ready_at_ = {};
  }
  const std::string& failure() const { return failure_; }
  /// The rank takes part from round `first` on.
  void begin_at(std::uint32_t first) {
    first_ = submitted_ = completed_ = first;
    has_begun_ = true;
  }
  bool has_begun() const { return has_begun_; }
  /// The rank takes part in no round from `end` on. It may learn that only later.
  void end_at(std::uint32_t end) { end_ = end; }
  /// Whether it takes part in a round.
  bool is_in(std::uint32_t round) const { return has_begun_ && first_ <= round && round < end_; }
  std::uint32_t end() const { return end_; }
  /// This rank's session is over: it submits nothing more.
  void leave() { has_left_ = true; }
  /// Whether the rank can give the result of a round to a rank that lacks it: the round is complete
  /// here, and its result is still in the arena.
  bool holds_result(std::uint32_t round) const;
  bool has_completed(std::uint32_t round) const { return round_done_[round]; }
  /// One past the last round that the rank has submitted.
  std::uint32_t submitted() const { return submitted_; }
  /// The first round that is not complete.
  std::uint32_t completed() const { return completed_; }
  /// One past the last complete round.
  std::uint32_t completed_end() const { return completed_end_; }
  /// Bit-exact hash of each completed round's result.
  const std::vector<std::uint64_t>& results() const { return results_; }

 private:
  void submit_next(Instant now);
  bool may_submit() const;
  double value_of(std::uint32_t round, std::uint32_t element) const;
  void check(const ipc::Completion& completion);
  std::uint64_t hash_of_slot(std::uint32_t round) const;
  void fill(std::uint32_t round, std::span<std::byte> slot) const;
  std::string check_result(std::uint32_t round, std::span<const std::byte> slot) const;
  std::string check_own(std::uint32_t round, std::span<const std::byte> slot, std::uint32_t begin,
                        std::uint32_t end) const;
  std::string check_sums(std::uint32_t round, std::span<const std::byte> slot, std::uint32_t begin,
                         std::uint32_t end) const;
  std::string check_exchange(const ipc::Completion& completion,
                             std::span<const std::byte> slot) const;
  std::string check_given(std::uint32_t round, std::span<const std::byte> slot) const;
  std::uint32_t giver(std::uint32_t round, std::size_t byte) const;
  std::uint32_t world_at(std::uint32_t round) const;

  const Scenario& scenario_;
  std::uint32_t rank_;
  std::uint32_t world_;
  std::size_t gate_;
  std::shared_ptr<engine::RankChannel> channel_;
  ToleranceChecker& checker_;
  testing::RankRings rings_;
  std::mt19937_64 random_;
  std::uint32_t submitted_ = 0;
  std::uint32_t completed_ = 0;
  std::uint32_t completed_end_ = 0;
  std::vector<bool> round_done_;
  Instant ready_at_;
  std::uint32_t first_ = 0;
  std::uint32_t end_ = UINT32_MAX;
  bool has_begun_ = false;
  bool has_left_ = false;
  std::string failure_;
  std::vector<std::uint64_t> results_;  // of rounds whose result is the same on all ranks
  std::vector<std::uint64_t> held_;     // of the slot's content when the round was done
};

}  // namespace gradplane::sim
