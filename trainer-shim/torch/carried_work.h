// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "trainer-shim/group/completion.h"
#include "trainer-shim/group/counters.h"
#include "trainer-shim/group/group_session.h"
#include "trainer-shim/torch/async_work.h"
#include "trainer-shim/torch/device_stream.h"
#include "trainer-shim/torch/originals.h"

namespace gradplane::shim {

/// The Work of a carried collective. It is one of Gloo's own asynchronous works, but when run() is
/// called, the result is there already. So Future, result, profiling, errors and barrier are
/// Gloo's.
class CarriedWork final : public AsyncWork {
 public:
  static constexpr WorkKind kAllReduce = {c10d::OpType::ALLREDUCE, "gloo:all_reduce"};
  static constexpr WorkKind kBroadcast = {c10d::OpType::BROADCAST, "gloo:broadcast"};
  static constexpr WorkKind kAllGather = {c10d::OpType::ALLGATHER, "gloo:all_gather"};
  static constexpr WorkKind kAllGatherCoalesced = {c10d::OpType::ALLGATHER_COALESCED,
                                                   "gloo:all_gather"};
  static constexpr WorkKind kReduceScatter = {c10d::OpType::REDUCE_SCATTER, "gloo:reduce_scatter"};

  /// `group` is the group that the program has called, or null if this is not a call of the
  /// program.
  using AsyncWork::AsyncWork;

  /// Sets the session whose leftovers wait() frees. Call it before the work is enqueued.
  void is_of(const std::shared_ptr<GroupSession>& session) { session_ = session; }

  /// Adds the stream that copies results to a device; null: there is none. Call it before the work
  /// is enqueued.
  void ends_on(const DeviceStreamPtr& stream) {
    if (stream) streams_.push_back(stream);
  }

  /// Makes later work of the calling thread on the device wait for the results.
  void synchronize() override {
    if (finished_here() == this) return;  // WorkCompletion did it
    hold_current_streams();
  }

  bool wait(std::chrono::milliseconds timeout) override {
    const std::int64_t from_ns = now_ns();
    struct Count {
      std::int64_t from_ns;
      ~Count() { counters().waited_ns += static_cast<std::uint64_t>(now_ns() - from_ns); }
    } const count{from_ns};
    const bool done = AsyncWork::wait(timeout);
    // Host memory may stay until the next collective, but device memory is scarce.
    const auto leaving =
        streams_.empty() ? GroupSession::Leaving::kSome : GroupSession::Leaving::kAll;
    if (const auto session = session_.lock()) session->free_leftovers(leaving);
    return done;
  }

  /// The program may add callbacks to the future, and they may do anything. So after this call the
  /// work is finished in a thread of the completer. The future knows no streams, so the results are
  /// on the device before it is complete. (With Gloo's own futures they may still be under way,
  /// except for the default stream.) If the work has ended before this call, the results are there
  /// as after wait().
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    Finish untouched = Finish::kUndecided;
    if (!finish_.compare_exchange_strong(untouched, Finish::kElsewhere)) {
      // The progress thread finishes the work just now. That is short, so this waits for it.
      while (untouched == Finish::kInPlace && !isCompleted()) std::this_thread::yield();
      if (untouched == Finish::kInPlace && isSuccess()) hold_current_streams();
    }
    return AsyncWork::getFuture();
  }

 private:
  friend class WorkCompletion;
  enum class Finish : std::uint8_t { kUndecided, kInPlace, kElsewhere };

  void run() override {
    if (failure_) std::rethrow_exception(failure_);
  }

  void hold_current_streams() {
    for (const DeviceStreamPtr& stream : streams_) stream->hold_current_stream();
  }

  /// Called when the copies to a device have been started. If the program has the future, the
  /// results must be on the device, so this waits for them. If the program only checks whether the
  /// work is complete, the results are in order with the default stream, which is the current one
  /// of all threads of the shim.
  void settle() {
    auto found = Finish::kUndecided;
    finish_.compare_exchange_strong(found, Finish::kInPlace);
    for (const DeviceStreamPtr& stream : streams_) {
      if (found == Finish::kElsewhere) stream->wait_until_out();
      stream->hold_current_stream();
    }
  }

  /// The work that this thread finishes just now. Gloo then calls synchronize(), which must not
  /// throw.
  static const CarriedWork*& finished_here() {
    static thread_local const CarriedWork* work = nullptr;
    return work;
  }

  std::weak_ptr<GroupSession> session_;
  std::vector<DeviceStreamPtr> streams_;
  std::exception_ptr failure_;
  std::atomic<Finish> finish_{Finish::kUndecided};
};

/// The completions of this adapter.
class TorchCompletion : public Completion {
 public:
  virtual const c10::intrusive_ptr<CarriedWork>& work() const = 0;
};

/// Finishes a carried work.
class WorkCompletion final : public TorchCompletion {
 public:
  explicit WorkCompletion(c10::intrusive_ptr<CarriedWork> work) : work_(std::move(work)) {}

  const c10::intrusive_ptr<CarriedWork>& work() const override { return work_; }

  /// True if the program does not have the future of the work.
  bool may_finish_in_place() override {
    auto untouched = CarriedWork::Finish::kUndecided;
    return work_->finish_.compare_exchange_strong(untouched, CarriedWork::Finish::kInPlace);
  }

  /// Runs the callbacks of the future in this thread, then lets wait() return or throw.
  void finish(std::exception_ptr failure) override {
    if (!failure && !work_->streams_.empty()) {
      try {
        work_->settle();
      } catch (...) {
        failure = std::current_exception();
      }
    }
    work_->failure_ = std::move(failure);
    CarriedWork::finished_here() = work_.get();
    Group::AsyncWork::execute(work_);
    CarriedWork::finished_here() = nullptr;
  }

 private:
  const c10::intrusive_ptr<CarriedWork> work_;
};

/// Finishes a carried work of several collectives when the last of them has ended.
class PartCompletion final : public TorchCompletion {
 public:
  struct Whole {
    Whole(c10::intrusive_ptr<CarriedWork> of, std::size_t parts)
        : work(std::move(of)), open(parts) {}

    WorkCompletion work;
    std::mutex mutex;
    std::size_t open;  // parts that have not ended
    std::exception_ptr failure;
  };

  explicit PartCompletion(std::shared_ptr<Whole> whole) : whole_(std::move(whole)) {}

  const c10::intrusive_ptr<CarriedWork>& work() const override { return whole_->work.work(); }
  bool may_finish_in_place() override { return false; }
  void finish(std::exception_ptr failure) override {
    {
      const std::lock_guard lock(whole_->mutex);
      if (failure && !whole_->failure) whole_->failure = failure;
      if (--whole_->open > 0) return;
    }
    whole_->work.finish(whole_->failure);
  }

 private:
  const std::shared_ptr<Whole> whole_;
};

}  // namespace gradplane::shim
