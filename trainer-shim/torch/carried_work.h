// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <atomic>
#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "trainer-shim/torch/counters.h"
#include "trainer-shim/torch/originals.h"

namespace gradplane::shim {

/// The Work of a carried collective. It is one of Gloo's own asynchronous works, whose run() finds
/// the result already there: so Future, result, profiling, errors and barrier are Gloo's.
class CarriedWork final : public Group::AsyncWork {
 public:
  /// `title` is Gloo's. What was gathered, a row for each rank, is copied into the outputs.
  CarriedWork(const TensorLists& outputs, const char* title, const Tensors& inputs,
              at::Tensor gathered = {})
      : AsyncWork(outputs, title, c10::optional<Tensors>(inputs)),
        called_ns_(now_ns()),
        gathered_(std::move(gathered)) {
    if (gathered_.defined()) outputs_ = outputs[0];
  }

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

  /// Decides whether the caller may finish the work in its own thread: nobody has its future, and
  /// nothing has to be copied.
  bool may_finish_in_place() {
    if (gathered_.defined()) return false;
    Finish untouched = Finish::kUndecided;
    return finish_.compare_exchange_strong(untouched, Finish::kInPlace);
  }

  /// Runs the callbacks of the future in this thread, then lets wait() return or throw.
  static void finish(c10::intrusive_ptr<CarriedWork> work, std::exception_ptr failure) {
    work->failure_ = std::move(failure);
    if (work->failure_) counters().failed_ops += 1;
    counters().pending_ns += static_cast<std::uint64_t>(now_ns() - work->called_ns_);
    AsyncWork::execute(std::move(work));
  }

 private:
  enum class Finish : std::uint8_t { kUndecided, kInPlace, kElsewhere };

  void run() override {
    if (failure_) std::rethrow_exception(failure_);
    for (std::size_t rank = 0; rank < outputs_.size(); ++rank) {
      outputs_[rank].copy_(gathered_[static_cast<std::int64_t>(rank)]);
    }
    gathered_.reset();
  }

  const std::int64_t called_ns_;
  at::Tensor gathered_;
  Tensors outputs_;
  std::exception_ptr failure_;
  std::atomic<Finish> finish_{Finish::kUndecided};
};

}  // namespace gradplane::shim
