// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "trainer-shim/torch/counters.h"
#include "trainer-shim/torch/originals.h"

namespace gradplane::shim {

/// The Work of a carried all_reduce. It is one of Gloo's own asynchronous works, whose run() finds
/// the sum already in the tensor: so Future, result, profiling, errors and barrier are Gloo's.
class CarriedWork final : public Group::AsyncWork {
 public:
  explicit CarriedWork(const Tensors& tensors)
      : AsyncWork({tensors}, "gloo:all_reduce", c10::optional<Tensors>(tensors)),
        called_ns_(now_ns()) {}

  bool wait(std::chrono::milliseconds timeout) override {
    const std::int64_t from_ns = now_ns();
    struct Count {
      std::int64_t from_ns;
      ~Count() { counters().waited_ns += static_cast<std::uint64_t>(now_ns() - from_ns); }
    } const count{from_ns};
    return AsyncWork::wait(timeout);
  }

  /// Runs the callbacks of the future in this thread, then lets wait() return or throw.
  static void finish(c10::intrusive_ptr<CarriedWork> work, std::exception_ptr failure) {
    work->failure_ = std::move(failure);
    if (work->failure_) counters().failed_ops += 1;
    counters().pending_ns += static_cast<std::uint64_t>(now_ns() - work->called_ns_);
    AsyncWork::execute(std::move(work));
  }

 private:
  void run() override {
    if (failure_) std::rethrow_exception(failure_);
  }

  const std::int64_t called_ns_;
  std::exception_ptr failure_;
};

}  // namespace gradplane::shim
