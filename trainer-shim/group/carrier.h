// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "trainer-shim/client/client.h"
#include "trainer-shim/group/agreement.h"
#include "trainer-shim/group/bucket_layout.h"
#include "trainer-shim/group/round_window.h"

namespace gradplane::shim {

/// One attachment to the daemon. It cuts collectives into rounds, submits them, and copies the
/// results back. It does not know torch. Only the progress thread uses it, except for wake() and
/// abandon().
class Carrier {
 public:
  struct Identity {
    std::uint32_t rank = 0;
    std::uint32_t world_size = 0;
  };
  enum class Turn { kIdle, kWorked, kOver };
  struct Kept {
    std::uint64_t round = 0;
    std::vector<std::byte> bytes;
  };

  /// `patience_ms` is the time for which a peer waits for this rank. Every limit in this class is
  /// shorter.
  Carrier(Identity identity, std::int64_t patience_ms);
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  /// True if a daemon's socket is there at all; costs one system call.
  static bool daemon_in_sight(std::string& cause);

  /// Whether the operator of this host's daemon forbids ranks to go on without it.
  static bool daemon_requires();

  /// Bounds attach() and wait_ready() to this time from now on, if the attach timeout is longer.
  void limit_attempt(std::int64_t limit_ns);

  /// Presents this rank to the daemon. False with the cause; bounded by the attach timeout.
  bool attach(const JobKey& job_key, std::string& cause);

  /// A sentence that names the ranks for which the daemon waits; empty when not attached.
  std::string describe_wait();

  /// Waits until all ranks have joined. False with the cause; bounded by the attach timeout.
  bool wait_ready(std::string& cause);

  /// Whether this rank must not go on without gradplane, because its user or the operator of its
  /// daemon says so.
  bool required() const { return required_; }

  std::size_t round_bytes() const;
  std::uint32_t rounds_in_flight_max() const;

  /// The daemon's terms for exchanges, on which the ranks then agree.
  std::uint32_t selections() const { return gp_selections(session_); }
  std::uint32_t average_every() const { return gp_average_every(session_); }
  std::uint32_t staleness() const { return gp_staleness(session_); }

  /// Begins the session with the values that all ranks can use. With `selections` above 0 it
  /// exchanges gradients; with 0 it sums them. The first round of a session is 0; a test may begin
  /// near the wrap of the daemon's 32-bit counter.
  void start(std::size_t round_bytes, std::uint32_t rounds_in_flight_max,
             std::uint64_t first_round = 0, std::uint32_t selections = 0);

  bool attached() const { return session_ != nullptr; }
  bool may_submit() const { return window_.may_submit(); }

  /// Submits the next round of `collective`, which must stay valid until it is complete. Returns
  /// false when the window is full or the session is over; poll() tells which.
  bool submit_next(Collective& collective, const BucketLayout* layout);

  /// Takes completions and writes the results into the collectives.
  Turn poll();

  /// Sleeps until something may have happened, at most `timeout_ms`.
  Turn wait(int timeout_ms);

  /// Whether some rank may still need results of other ranks before it can end. That may be when
  /// one of the last rounds lacked a rank's contribution, or was an exchange, where no rank knows
  /// who lacks a result. All ranks that have completed the same rounds give the same answer.
  bool left_a_rank_behind() const {
    return window_.next() < behind_until_ ||
           (exchanged_end_ != 0 && whole_end_ < exchanged_end_ + kMaxLeadRounds);
  }

  /// Tells the daemon how far the parameters are from their mean. Never waits.
  void report_drift(std::uint64_t step, double distance, double norm);

  /// Why the session is over.
  const std::string& cause() const { return cause_; }

  /// Leaves the session with an error, so that the daemon tells the other ranks. After this nothing
  /// can be submitted, but drain() can still take what the daemon completes.
  void leave();

  /// Takes the completions that the daemon wrote before or after the end of the session.
  void drain();

  /// Writes into the statement which rounds this rank has completed, for a recovery.
  void describe(Statement& statement) const;

  /// Copies out the results that a peer may lack, and releases the shared memory.
  std::vector<Kept> release_all();

  /// The slice of a round that was submitted, or nullptr.
  Round* find(std::uint64_t round) { return window_.find(round); }

  /// The first round that was not submitted.
  std::uint64_t next_round() const { return window_.next(); }

  /// Counts the next round of `collective` as submitted without telling the daemon, because its
  /// result comes in another way. The round is cut as the other ranks cut it.
  Round& skip_next(Collective& collective);

  /// Marks a round whose result has been written by other means.
  void complete(std::uint64_t round);

  void detach(bool clean);

  /// Ends a wait(). Any thread.
  void wake();

  /// In a child after fork(), where no other thread runs.
  void abandon();

 private:
  /// A slice of a bucket that the daemon was told of.
  struct NamedBucket {
    std::uint64_t version = 0;  // of the layout
    std::uint16_t id = 0;       // 0: it has none
  };

  Round cut_next(Collective& collective) const;
  bool take(const gp_completion& completion);
  static void count_partial(const gp_completion& completion, bool stale);
  void* memory_of(std::uint64_t round) const;
  std::uint16_t bucket_of(const BucketLayout* layout, const Round& round);
  std::uint16_t register_bucket(const BucketLayout& layout, const Round& round);
  Turn over(int status);

  const Identity identity_;
  const std::uint32_t attach_limit_ms_;
  std::uint32_t attempt_limit_ms_;
  const std::uint32_t liveness_limit_ms_;
  bool required_;
  std::mutex session_mutex_;  // guards the change of session_ against wake()
  gp_session* session_ = nullptr;
  RoundWindow window_;
  std::size_t agreed_round_bytes_ = 0;
  std::uint32_t agreed_selections_ = 0;
  std::size_t buckets_of_sums_ = 0;  // ids that sums outside DDP have taken
  /// Some rank may still lack results if the session ends before this round.
  std::uint64_t behind_until_ = 0;
  /// One past the last exchange that is complete.
  std::uint64_t exchanged_end_ = 0;
  /// One past the last round to which all ranks have contributed. A rank that has contributed to a
  /// round has completed all rounds that are kMaxLeadRounds before it.
  std::uint64_t whole_end_ = 0;
  std::string cause_;
  std::map<std::pair<std::uint64_t, std::size_t>, NamedBucket> buckets_;  // by key and offset
  /// Every rank assigns ids in the order of its submissions, so all ranks assign the same ids. No
  /// id is used twice, because every node keeps one table for an id as long as the job lives.
  std::uint16_t last_bucket_id_ = 0;
};

}  // namespace gradplane::shim
