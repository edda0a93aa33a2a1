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

/// What the oldest round with missing input waits for: other nodes, or ranks here. It is only shown
/// to people.
struct Waiting {
  static constexpr std::size_t kMaxSilentNamed = 64;
  bool any = false;
  std::uint32_t round = 0;
  std::uint32_t open_rounds = 0;
  LocalRankBits local_missing = 0;  // ranks that have not submitted
  /// Children that have sent nothing of the round. In an exchange, also those that have not acked
  /// everything.
  std::uint32_t silent_count = 0;
  std::array<std::uint16_t, kMaxSilentNamed> silent_nodes{};
};

/// The rounds of a job: how they begin, what local ranks contribute, when they may close, and when
/// they are done.
class Rounds {
 public:
  explicit Rounds(State& state);

  SubmitResult submit(std::size_t local_rank, std::uint32_t id, const Statement& said);
  [[nodiscard]] bool add_bucket(aggregate::Bucket* bucket);
  /// Sums up to `max_blocks` blocks that local ranks have submitted. True while there is more to
  /// do.
  bool sum_local(std::size_t max_blocks);
  bool has_local_work() const { return !local_work_.empty(); }

  /// The geometry of a round with this statement; nothing if no round of this job can have it.
  std::optional<Geometry> geometry_of(const Statement& said) const;
  void open(Round& round, const Geometry& geometry);
  /// Called after any event that the round may have waited for. Tells the local ranks when the
  /// round is done, and ends it when every child has its results.
  void finish_if_done(Round& round);
  /// Closes the rounds that may be summed although some blocks are missing.
  void close_due(Instant now);
  bool any_gathering() const;
  /// Whether an older round that all ranks get alike is not done here.
  bool lacks_exact_before(std::uint32_t round) const;
  /// Another rank has come further in this bucket, which is under bounded staleness.
  void on_update(std::uint16_t bucket);
  /// How many exchanges of a bucket under bounded staleness the peer's rank is behind this node's
  /// rank, over all live plans.
  std::int64_t lag_of(const Geometry& geometry, hop::PeerIndex peer) const;
  /// The round's bucket, if this node knows it with this geometry; otherwise nullptr.
  aggregate::Bucket* bucket_of(const Geometry& geometry) const;
  /// The number of buckets that this node knows.
  std::uint32_t bucket_count() const { return bucket_count_; }
  /// The round's bucket, if this node knows it with another geometry; otherwise nullptr.
  const aggregate::Bucket* other_bucket(const Geometry& geometry) const;
  /// Reports that `node` states something else about the round than this node knows.
  void report_mismatch(std::uint16_t node, const Round& round, const Geometry& theirs);

  Waiting waiting() const;

 private:
  /// A task of sum_local(): blocks of a local rank that one tree has still to sum (kAdd), or blocks
  /// of one tree that local ranks have still to get (kDeliver).
  struct LocalWork {
    enum class Kind : std::uint8_t { kAdd, kDeliver };
    Kind kind = Kind::kAdd;
    std::uint32_t round = 0;
    std::uint16_t local_rank = 0;
    std::uint8_t tree = 0;
    std::uint32_t block = 0;
  };

  bool is_streamed(const Geometry& geometry) const;
  aggregate::ExchangesDone* exchanges_of(const Plan& plan, const Geometry& geometry) const;
  void release_updates();
  bool differs_from_streams(const Round& round);
  bool is_fresh(const Round& round) const;
  void announce(const Round& round);
  void contribute(Round& round, std::size_t local_rank);
  void begin_delivery(Round& round);
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
  std::uint32_t bucket_count_ = 0;
};

}  // namespace gradplane::job
