// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <ATen/ATen.h>

#include <utility>

#include "trainer-shim/group/staging.h"
#include "trainer-shim/torch/device_stream.h"
#include "trainer-shim/torch/originals.h"

namespace gradplane::shim {

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
        stream_(std::move(stream)) {}

  bool is_in() override { return !stream_ || stream_->is_in(); }
  bool goes_out() const override { return divisor_ != 1 || !result_.is_same(output_); }
  void bring_out() override {
    const at::NoGradGuard plain;
    if (divisor_ != 1) result_.div_(divisor_);
    if (result_.is_same(output_)) return;
    const auto copy = [this] { output_.copy_(result_, /*non_blocking=*/true); };
    stream_ ? stream_->bring_out(copy) : copy();
  }
  bool goes_out_at_once() const override { return stream_ && divisor_ == 1; }

 private:
  const at::Tensor given_;
  at::Tensor result_;
  at::Tensor output_;
  const int divisor_;
  const DeviceStreamPtr stream_;
};

/// Rows that were gathered, one for each rank, which go to tensors of their own.
class GatheredRows final : public Staging {
 public:
  GatheredRows(at::Tensor rows, Tensors outputs, DeviceStreamPtr stream)
      : rows_(std::move(rows)), outputs_(std::move(outputs)), stream_(std::move(stream)) {}

  bool is_in() override { return !stream_ || stream_->is_in(); }
  bool goes_out() const override { return true; }
  void bring_out() override {
    const auto copy = [this] {
      for (std::size_t rank = 0; rank < outputs_.size(); ++rank) {
        outputs_[rank].copy_(rows_[static_cast<std::int64_t>(rank)], /*non_blocking=*/true);
      }
    };
    stream_ ? stream_->bring_out(copy) : copy();
  }
  bool goes_out_at_once() const override { return stream_ != nullptr; }

 private:
  const at::Tensor rows_;
  const Tensors outputs_;
  const DeviceStreamPtr stream_;
};

}  // namespace gradplane::shim
