// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "trainer-shim/group/completion.h"
#include "trainer-shim/group/counters.h"
#include "trainer-shim/group/staging.h"
#include "trainer-shim/torch/originals.h"

namespace gradplane::shim {

/// The Work of a carried collective. It is one of Gloo's own asynchronous works, whose run() finds
/// the result already there: so Future, result, profiling, errors and barrier are Gloo's.
class CarriedWork final : public Group::AsyncWork {
 public:
  /// What Gloo calls an operation.
  struct Kind {
    c10d::OpType type;
    const char* title;  // in profiles
  };
  static constexpr Kind kAllReduce = {c10d::OpType::ALLREDUCE, "gloo:all_reduce"};
  static constexpr Kind kBroadcast = {c10d::OpType::BROADCAST, "gloo:broadcast"};
  static constexpr Kind kAllGather = {c10d::OpType::ALLGATHER, "gloo:all_gather"};
  static constexpr Kind kAllGatherCoalesced = {c10d::OpType::ALLGATHER_COALESCED,
                                               "gloo:all_gather"};
  static constexpr Kind kReduceScatter = {c10d::OpType::REDUCE_SCATTER, "gloo:reduce_scatter"};

  /// `group` is the one that the program called; null: this is none of its calls.
  CarriedWork(Group* group, const Kind& kind, const TensorLists& outputs, const Tensors& inputs)
#if GP_TORCH_AT_LEAST(2, 0)
      : AsyncWork(outputs, kind.type, next_sequence_number(group), kind.title,
                  std::optional<Tensors>(inputs)){}
#else
      : AsyncWork(outputs, kind.title, c10::optional<Tensors>(inputs)) {
    static_cast<void>(group);
  }
#endif

        bool wait(std::chrono::milliseconds timeout) override {
    const std::int64_t from_ns = now_ns();
    struct Count {
      std::int64_t from_ns;
      ~Count() { counters().waited_ns += static_cast<std::uint64_t>(now_ns() - from_ns); }
    } const count{from_ns};
    return AsyncWork::wait(timeout);
  }

  /// Whoever has the future may add callbacks to it, and they may do anything, so that the work has
  /// to be finished in a thread that nobody waits for.
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    Finish untouched = Finish::kUndecided;
    if (!finish_.compare_exchange_strong(untouched, Finish::kElsewhere)) {
      // It is finished in place just now, which takes no longer than a callback would be late.
      while (untouched == Finish::kInPlace && !isCompleted()) std::this_thread::yield();
    }
    return AsyncWork::getFuture();
  }

 private:
  friend class WorkCompletion;
  enum class Finish : std::uint8_t { kUndecided, kInPlace, kElsewhere };

  void run() override {
    if (failure_) std::rethrow_exception(failure_);
  }

#if GP_TORCH_AT_LEAST(2, 0)
  /// Gloo numbers the operations of a group, and so it counts those of its program that we carry.
  static std::uint64_t next_sequence_number(Group* group) {
    if (!group) return 0;
    struct Access : Group {
      static auto number() { return &Access::seq_; }
    };
    return ++(group->*Access::number());
  }
#endif

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
    work_->failure_ = std::move(failure);
    Group::AsyncWork::execute(work_);
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

/// Host memory of tensors.
using TensorMemory = HostMemory<Tensors>;

/// What a rank gives, and the part of the sum that it gets. Either may lie elsewhere than in the
/// program's tensor, where that is no plain run of elements.
class CopiedOut final : public Staging {
 public:
  /// `divisor` is what the program wants the sums divided by.
  CopiedOut(at::Tensor given, at::Tensor result, at::Tensor output, int divisor)
      : given_(std::move(given)),
        result_(std::move(result)),
        output_(std::move(output)),
        divisor_(divisor) {}

  bool is_in() override { return true; }
  bool goes_out() const override { return divisor_ != 1 || !result_.is_same(output_); }
  void bring_out() override {
    const at::NoGradGuard plain;
    if (divisor_ != 1) result_.div_(divisor_);
    if (!result_.is_same(output_)) output_.copy_(result_);
  }

 private:
  const at::Tensor given_;
  at::Tensor result_;
  at::Tensor output_;
  const int divisor_;
};

/// Rows that were gathered, one for each rank, which go to tensors of their own.
class GatheredRows final : public Staging {
 public:
  GatheredRows(at::Tensor rows, Tensors outputs)
      : rows_(std::move(rows)), outputs_(std::move(outputs)) {}

  bool is_in() override { return true; }
  bool goes_out() const override { return true; }
  void bring_out() override {
    for (std::size_t rank = 0; rank < outputs_.size(); ++rank) {
      outputs_[rank].copy_(rows_[static_cast<std::int64_t>(rank)]);
    }
  }

 private:
  const at::Tensor rows_;
  const Tensors outputs_;
};

}  // namespace gradplane::shim
