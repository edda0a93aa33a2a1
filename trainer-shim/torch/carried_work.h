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

/// The Work of a carried collective. It is one of Gloo's own asynchronous works, whose run() finds
/// the result already there: so Future, result, profiling, errors and barrier are Gloo's.
class CarriedWork final : public AsyncWork {
 public:
  static constexpr WorkKind kAllReduce = {c10d::OpType::ALLREDUCE, "gloo:all_reduce"};
  static constexpr WorkKind kBroadcast = {c10d::OpType::BROADCAST, "gloo:broadcast"};
  static constexpr WorkKind kAllGather = {c10d::OpType::ALLGATHER, "gloo:all_gather"};
  static constexpr WorkKind kAllGatherCoalesced = {c10d::OpType::ALLGATHER_COALESCED,
                                                   "gloo:all_gather"};
  static constexpr WorkKind kReduceScatter = {c10d::OpType::REDUCE_SCATTER, "gloo:reduce_scatter"};

  /// `group` is the one that the program called; null: this is none of its calls.
  using AsyncWork::AsyncWork;

  /// Before it is enqueued: whose leftovers the program's thread frees.
  void is_of(const std::shared_ptr<GroupSession>& session) { session_ = session; }

  /// Before it is enqueued: results go to a device by this stream. Null: they do not.
  void ends_on(const DeviceStreamPtr& stream) {
    if (stream) streams_.push_back(stream);
  }

  /// The calling thread's work on the device comes after the results.
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
    // Memory of the host may stay until the next collective; that of a device is dear.
    const auto leaving =
        streams_.empty() ? GroupSession::Leaving::kSome : GroupSession::Leaving::kAll;
    if (const auto session = session_.lock()) session->free_leftovers(leaving);
    return done;
  }

  /// Whoever has the future may add callbacks to it, and they may do anything, so that the work has
  /// to be finished in a thread that nobody waits for. A future knows no streams here, so its
  /// results are on the device before it is complete. (With Gloo's own they may still be on their
  /// way, unless the default stream is the one that uses them.) Who asks when the work has ended
  /// finds them as after wait().
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    Finish untouched = Finish::kUndecided;
    if (!finish_.compare_exchange_strong(untouched, Finish::kElsewhere)) {
      // It is finished in place just now, which takes no longer than a callback would be late.
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

  /// The results are on their way to a device: if somebody has the future, they have to be there.
  /// Programs may look whether a work is complete and not wait for it; then they are on the default
  /// stream, which is that of every thread of the shim.
  void settle() {
    auto found = Finish::kUndecided;
    finish_.compare_exchange_strong(found, Finish::kInPlace);
    for (const DeviceStreamPtr& stream : streams_) {
      if (found == Finish::kElsewhere) stream->wait_until_out();
      stream->hold_current_stream();
    }
  }

  /// The work that this thread finishes. What Gloo calls then must not throw.
  static const CarriedWork*& finished_here() {
    static thread_local const CarriedWork* work = nullptr;
    return work;
  }

  std::weak_ptr<GroupSession> session_;
  std::vector<DeviceStreamPtr> streams_;
  std::exception_ptr failure_;
  std::atomic<Finish> finish_{Finish::kUndecided};
};

/// What the sessions of this adapter finish.
class TorchCompletion : public Completion {
 public:
  virtual const c10::intrusive_ptr<CarriedWork>& work() const = 0;
};

/// Finishes a carried work.
class WorkCompletion final : public TorchCompletion {
 public:
  explicit WorkCompletion(c10::intrusive_ptr<CarriedWork> work) : work_(std::move(work)) {}

  const c10::intrusive_ptr<CarriedWork>& work() const override { return work_; }

  /// Nobody may have its future.
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
