// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <utility>

#include "trainer-shim/group/staging.h"
#include "trainer-shim/torch/device_stream.h"
#include "trainer-shim/torch/originals.h"

namespace gradplane::shim {

/// The grad mode and the inference mode of the program that calls a collective. Its tensors must be
/// written in the same modes. For host tensors Gloo does that only from 2.6 on. Before, it writes
/// in the modes of a new thread; this does the same, so that the same writes are refused.
class CallersModes {
 public:
  /// Call it in the thread of the program.
  explicit CallersModes(bool on_device)
      : inference_(heeds(on_device) && c10::InferenceMode::is_enabled()),
        gradients_(!heeds(on_device) || at::GradMode::is_enabled()) {}

  class Entered {
   public:
    explicit Entered(const CallersModes& modes)
        : inference_(modes.inference_), gradients_(modes.gradients_) {}

   private:
    const c10::InferenceMode inference_;
    const at::AutoGradMode gradients_;
  };

 private:
  static bool heeds(bool on_device) { return on_device || GP_TORCH_AT_LEAST(2, 6); }

  const bool inference_;
  const bool gradients_;
};

/// The contribution of a rank and its result. They are copies if the program's tensor is not one
/// run of elements without gaps in host memory.
class CopiedOut final : public Staging {
 public:
  /// The sums are divided by `divisor`. If `output` is on a device, `stream` is the device's,
  /// otherwise null.
  CopiedOut(at::Tensor given, at::Tensor result, at::Tensor output, int divisor,
            DeviceStreamPtr stream)
      : given_(std::move(given)),
        result_(std::move(result)),
        output_(std::move(output)),
        divisor_(divisor),
        stream_(std::move(stream)),
        modes_(stream_ != nullptr) {}

  bool is_in() override { return !stream_ || stream_->is_in(); }
  bool goes_out() const override { return divisor_ != 1 || !result_.is_same(output_); }
  void bring_out() override {
    const CallersModes::Entered as_called(modes_);
    const at::NoGradGuard plain;
    if (divisor_ != 1) result_.div_(divisor_);
    if (result_.is_same(output_)) return;
    const auto copy = [this] { output_.copy_(result_, /*non_blocking=*/true); };
    stream_ ? stream_->bring_out(copy) : copy();
  }
  bool goes_out_at_once() const override {
    return stream_ && divisor_ == 1 && output_.is_non_overlapping_and_dense();
  }

 private:
  const at::Tensor given_;
  at::Tensor result_;
  at::Tensor output_;
  const int divisor_;
  const DeviceStreamPtr stream_;
  const CallersModes modes_;
};

/// Gathered rows, one for each rank, which are copied to a tensor for each.
class GatheredRows final : public Staging {
 public:
  GatheredRows(at::Tensor rows, Tensors outputs, DeviceStreamPtr stream)
      : rows_(std::move(rows)),
        outputs_(std::move(outputs)),
        stream_(std::move(stream)),
        modes_(stream_ != nullptr) {}

  bool is_in() override { return !stream_ || stream_->is_in(); }
  bool goes_out() const override { return true; }
  void bring_out() override {
    const CallersModes::Entered as_called(modes_);
    const auto copy = [this] {
      for (std::size_t rank = 0; rank < outputs_.size(); ++rank) {
        outputs_[rank].copy_(rows_[static_cast<std::int64_t>(rank)], /*non_blocking=*/true);
      }
    };
    stream_ ? stream_->bring_out(copy) : copy();
  }
  bool goes_out_at_once() const override {
    // A copy to a tensor that is not contiguous allocates memory on the device, which may block.
    return stream_ && std::all_of(outputs_.begin(), outputs_.end(),
                                  [](const at::Tensor& t) { return t.is_contiguous(); });
  }

 private:
  const at::Tensor rows_;
  const Tensors outputs_;
  const DeviceStreamPtr stream_;
  const CallersModes modes_;
};

}  // namespace gradplane::shim
