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

/// Whether the program that calls a collective wants gradients, and whether it is in inference
/// mode. Its tensors may only be written to in the same modes. For host tensors Gloo heeds them
/// from 2.6 on; before that it writes as a fresh thread does, and what it refuses is refused here.
class CallersModes {
 public:
  /// In the thread of the program.
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

/// What a rank gives, and what it gets for it. Either may lie elsewhere than in the program's
/// tensor, where that is no plain run of elements in host memory.
class CopiedOut final : public Staging {
 public:
  /// `divisor` is what the program wants the sums divided by. `stream` is that of a device whose
  /// tensor `output` is, or null.
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

/// Rows that were gathered, one for each rank, which go to tensors of their own.
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
    // Others take memory of the device on their way, for which it may have to be waited.
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
