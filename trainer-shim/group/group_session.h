// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "trainer-shim/group/bucket_layout.h"
#include "trainer-shim/group/carrier.h"
#include "trainer-shim/group/completion.h"
#include "trainer-shim/group/exchange_schedule.h"
#include "trainer-shim/group/retry_policy.h"
#include "trainer-shim/group/side_group.h"
#include "trainer-shim/group/staging.h"

namespace gradplane::shim {

/// The collectives of one process group of a framework that gradplane carries. They form a queue in
/// the order of the calls. A progress thread sends them in this order, either through the daemon or
/// through the side group. All ranks decide together which of the two it is.
/// docs/decisions/0002-attach-and-fallback.md gives the reason for each step. SideGroup, Staging
/// and Completion hide the framework.
class GroupSession : public std::enable_shared_from_this<GroupSession> {
 public:
  GroupSession(std::unique_ptr<SideGroup> side, int rank, int size);

  /// Starts the progress thread. Throws std::system_error.
  void start();

  /// The layout and schedule of a gradient bucket; null for all other collectives.
  struct Gradient {
    std::shared_ptr<const BucketLayout> layout;
    std::shared_ptr<ExchangeSchedule> schedule;
  };

  /// Queues a collective that the caller has checked. `memory` is the collective's, and
  /// `completion` is finished when the collective has ended. Any thread.
  void enqueue(CompletionPtr completion, const Collective& collective, StagingPtr memory,
               Gradient gradient = {});

  /// Call it when the memory of a collective may be in. Any thread.
  void wake();

  /// Frees the memory and the completions of operations that have ended. Only a thread of the
  /// program may call it. The progress thread leaves them a moment after the program has got the
  /// result: `kAll` waits for that moment, but not for callbacks.
  enum class Leaving : std::uint8_t { kSome, kAll };
  void free_leftovers(Leaving leaving = Leaving::kSome);

  /// Reports the drift of the parameters to the daemon, if this group is carried. Any thread.
  struct Drift {
    std::uint64_t step = 0;
    double distance = 0;
    double norm = 0;
  };
  void report(const Drift& drift);
  int size() const { return size_; }

  /// The collectives that have not ended, for a barrier to wait for. Any thread.
  std::vector<CompletionPtr> unfinished();

  /// Asks the progress thread to finish all queued operations and to end. Does not wait.
  void request_stop();

  /// Whether the progress thread has ended, so that shut_down() waits for nothing. Any thread.
  bool has_ended();

  /// Stops the progress thread and waits for its end. The wait is at most `limit_ms` while
  /// operations are queued, and at most kHelpLimitMs while other ranks may need the results of this
  /// rank, plus a moment. If dead peers block the thread, this function abandons the thread
  /// together with this object. At the end of a process, leftovers of operations must be kept: the
  /// allocator of a GPU is gone then, and freeing its memory would end the process by an exception.
  enum class Leftovers : std::uint8_t { kFreed, kKept };
  void shut_down(std::int64_t limit_ms, Leftovers leftovers = Leftovers::kFreed);

  /// Only for a child after fork(), where the progress thread does not exist.
  void abandon() { carrier_.abandon(); }
  bool required() const { return carrier_.required(); }

 private:
  enum class Mode { kUndecided, kCarried, kFallenBack, kBroken };

  struct Op {
    CompletionPtr completion;  // empty once it is finished
    StagingPtr memory;
    Collective collective;
    Gradient gradient;
    std::int64_t called_ns = 0;
    std::int64_t deadline_ns = 0;  // 0: not started
    OriginalWorkPtr side_work;     // while it goes through the side group
  };

  /// What is left of a finished operation. Only a thread of the program frees it, because its
  /// tensors may belong to Python. While Python ends, it ends each thread that asks for its lock,
  /// and in a destructor that would end the process.
  struct Remains {
    CompletionPtr completion;
    StagingPtr memory;
  };

  void run();
  bool nothing_is_left();
  bool is_awaited(std::int64_t limit_ns) const;
  bool waits_no_longer();
  void take_inbox();
  void wait_for_inbox();
  bool agreement_is_due() const;

  bool all_want_to_agree();
  void agree();
  void say_for_whom(Stage stage, bool able, std::int64_t seconds);
  std::vector<Statement> exchange(Statement& mine, Stage stage, bool able,
                                  const std::string& cause);
  void begin_carrying(const std::vector<Statement>& statements);
  void fall_back(const Verdict& verdict);

  static bool is_begun(const Op& op);
  void carry_turn();
  bool submit_some();
  void finish_completed();
  int wait_ms_until_deadline() const;
  void check_deadlines();

  /// The repair of a lost session.
  struct Recovery {
    std::vector<Statement> statements;  // by rank
    std::vector<Carrier::Kept> kept;    // this rank's results
    std::uint64_t round = 0;            // the round that is repaired now
  };
  class Helping;
  void recover();
  void recover_from(const std::string& cause);
  void end_in_step();
  std::vector<Statement> repair(bool able, const std::string& cause);
  void repair_round(Recovery& recovery, int holder);
  void repair_shards(Recovery& recovery, Round& slice, const StillWaiting& say);
  void repair_exchange(const Recovery& recovery);
  static Carrier::Kept& kept_result(Recovery& recovery);
  Round& slice_of(std::uint64_t round);
  Collective& next_unsubmitted(std::uint64_t round);
  const StagingPtr& memory_of(const Collective& collective) const;

  void fall_back_turn();
  void issue_on_side(Op& op);

  void finish(Op& op, std::exception_ptr failure);
  void pop_finished();
  void break_with(std::exception_ptr failure);

  const int rank_;
  const int size_;
  const std::unique_ptr<SideGroup> side_;
  Carrier carrier_;

  // Only the progress thread uses these.
  Mode mode_ = Mode::kUndecided;
  std::deque<Op> ops_;              // from the first that is not finished
  std::uint64_t front_number_ = 0;  // of ops_.front(), counted from the group's first operation
  RetryPolicy retry_;
  std::uint32_t attempts_ = 0;
  ExchangeTerms exchange_;  // of the present session
  std::exception_ptr broken_;
  std::string lost_because_;  // why the session was lost, until a collective has failed of it

  /// Wakes the progress thread when it is not waiting for the daemon. It is shared, because a
  /// callback of the side group may hold it for a moment after the session has ended.
  struct Bell {
    std::mutex mutex;
    std::condition_variable rung;
    bool changed = false;                // a work of the side group is over, or memory may be in
    std::uint64_t leaving_count = 0;     // collectives that the progress thread finishes just now
    std::uint64_t completing_count = 0;  // collectives whose callbacks run or wait to run
    std::condition_variable completed;
    std::vector<Remains> remains;  // until free_leftovers(), the next operation, or the end
  };

  static void ring(Bell& bell);

  // Shared with the callers; guarded by bell_->mutex.
  const std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();
  std::condition_variable thread_ended_;
  std::deque<Op> inbox_;
  std::optional<Drift> drift_;
  std::vector<std::weak_ptr<Completion>> unfinished_;
  std::uint64_t pending_count_ = 0;
  bool stopping_ = false;
  std::int64_t help_until_ns_ = 0;  // set when stopping
  bool helping_ = false;            // other ranks may need this rank's results now
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace gradplane::shim
