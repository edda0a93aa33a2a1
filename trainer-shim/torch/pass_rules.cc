// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/torch/pass_rules.h"

#include <algorithm>

#include "trainer-shim/torch/element_types.h"

namespace gradplane::shim {
namespace {

std::optional<PassReason> why_not_plain(const at::Tensor& t) {
  if (!t.device().is_cpu()) return PassReason::kDevice;
  if (t.layout() != at::kStrided || !t.has_storage()) return PassReason::kLayout;
  return std::nullopt;
}

/// Like Gloo, gradplane takes the run of numel elements that starts at data_ptr, whatever the
/// strides of a view are.
std::optional<PassReason> why_no_run(const at::Tensor& t) {
  if (t.numel() == 0) return PassReason::kEmpty;
  const auto end = static_cast<std::size_t>(t.storage_offset() + t.numel()) * t.itemsize();
  if (end > t.storage().nbytes()) return PassReason::kOverlap;
  return std::nullopt;
}

}  // namespace

std::optional<PassReason> why_passed(const Tensors& tensors,
                                     const c10d::AllreduceOptions& options) {
  if (options.reduceOp.op_ != c10d::ReduceOp::SUM) return PassReason::kReduceOp;
  if (tensors.size() != 1 || !tensors[0].defined()) return PassReason::kTensorCount;
  const at::Tensor& t = tensors[0];
  if (const auto reason = why_not_plain(t)) return reason;
  if (!element_type_of(t.scalar_type())) return PassReason::kElementType;
  return why_no_run(t);
}

std::optional<PassReason> why_passed(const Tensors& tensors, const c10d::BroadcastOptions& options,
                                     int ranks) {
  if (tensors.size() != 1 || !tensors[0].defined()) return PassReason::kTensorCount;
  const bool has_root = options.rootRank >= 0 && options.rootRank < ranks;
  if (!has_root || options.rootTensor != 0) return PassReason::kArguments;
  const at::Tensor& t = tensors[0];
  if (const auto reason = why_not_plain(t)) return reason;
  if (!is_copied(t.scalar_type())) return PassReason::kElementType;
  return why_no_run(t);
}

/// Gloo copies into and out of a run of its own, so views of any strides keep their elements.
std::optional<PassReason> why_passed(const TensorLists& outputs, const Tensors& inputs, int ranks) {
  const bool is_one = inputs.size() == 1 && outputs.size() == 1 && inputs[0].defined();
  if (!is_one) return PassReason::kTensorCount;
  const at::Tensor& t = inputs[0];
  if (const auto reason = why_not_plain(t)) return reason;
  if (!is_copied(t.scalar_type())) return PassReason::kElementType;
  if (t.numel() == 0) return PassReason::kEmpty;
  const bool fit = std::all_of(outputs[0].begin(), outputs[0].end(), [&](const at::Tensor& output) {
    return output.defined() && output.options().type_equal(t.options()) &&
           output.sizes() == t.sizes();
  });
  if (!fit || outputs[0].size() != static_cast<std::size_t>(ranks)) return PassReason::kArguments;
  return std::nullopt;
}

}  // namespace gradplane::shim
