// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/aggregate/bucket.h"
#include "dataplane/base/fixed_queue.h"
#include "dataplane/job/state.h"

namespace gradplane::job {

/// What the oldest open round waits for. For people.
struct Waiting {
  static constexpr std::size_t kMaxSilentNamed = 64;
  bool any = false;
  std::uint32_t round = 0;
  std::uint32_t open_rounds = 0;
  std::uint32_t local_missing = 0;  // bit per local rank that has not submitted
  std::uint32_t silent_count = 0;   // children that have sent nothing of it
  std::array<std::uint16_t, kMaxSilentNamed> silent_nodes{};
};

/// The rounds of a job: how they begin, what local ranks contribute, when they may close, and when
/// they are done.
class Rounds {
 public:
  explicit Rounds(State& state);

  SubmitResult submit(std::size_t local_rank, std::uint32_t id, const Statement& said);
  [[nodiscard]] bool add_bucket(aggregate::Bucket* bucket);
  /// Sums some of what local ranks have submitted. True while there is more to do.
  bool sum_local(std::size_t max_blocks);
  bool has_local_work() const { return !local_work_.empty(); }

  /// The geometry of what somebody says of a round; nothing when no round of this job can be so.
  std::optional<Geometry> geometry_of(const Statement& said) const;
  void open(Round& round, const Geometry& geometry);
  /// After anything that may have been what the round waited for: tells the local ranks that it is
  /// done, and ends it when every child has its results.
  void finish_if_done(Round& round);
  /// Closes the rounds that may be summed without some blocks.
  void close_due(Instant now);
  bool any_gathering() const;
  /// Somebody says something else of the round than this node knows.
  void report_mismatch(std::uint16_t node, const Round& round, const Geometry& theirs);

  Waiting waiting() const;

 private:
  /// What a local rank has submitted for one tree and is not summed yet.
  struct LocalWork {
    std::uint32_t round = 0;
    std::uint16_t local_rank = 0;
    std::uint8_t tree = 0;
    std::uint32_t block = 0;
  };

  aggregate::Bucket* bucket_of(const Geometry& geometry) const;
  void announce(const Round& round);
  void contribute(Round& round, std::size_t local_rank);
  bool fits(const Geometry& geometry) const;
  void restore_residual(Round& round);
  bool is_done(const Round& round) const;
  void tell(Round& round);
  void end(Round& round);
  bool has_in_hand(std::uint32_t bucket, std::uint32_t id) const;
  bool may_leave_behind(const aggregate::Tree& tree, const Round& round);
  bool has_ended(std::uint32_t id) const;
  void close_due(Plan& plan, Instant now);
  void close(aggregate::Tree& tree, Round& round, CloseReason reason, Instant now);

  State& state_;
  FixedQueue<LocalWork> local_work_;
  bool mismatch_reported_ = false;
};

}  // namespace gradplane::job
