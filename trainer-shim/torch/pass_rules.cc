// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/torch/pass_rules.h"

#include <algorithm>

#include "trainer-shim/group/environment.h"
#include "trainer-shim/torch/element_types.h"

namespace gradplane::shim {
namespace {

/// The memory of a GPU is copied into host memory and back, as Gloo does it.
std::optional<PassReason> why_not_plain(const at::Tensor& t) {
  if (!t.device().is_cpu() && !t.is_cuda()) return PassReason::kDevice;
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

/// From 2.11 on Gloo divides sums where a mean is asked for; before, it refuses that. What it does
/// in between is not known here.
bool is_reduced(c10d::ReduceOp::RedOpType op) {
  return reduction_of(op) || (op == c10d::ReduceOp::AVG && GP_TORCH_AT_LEAST(2, 11));
}

/// Whether a reduce_scatter does for `op` what Gloo's own would do.
bool is_scattered(c10d::ReduceOp::RedOpType op) {
  if (!reduction_of(op) && op != c10d::ReduceOp::AVG) return false;
  return op == c10d::ReduceOp::SUM || kGloosScatter != GloosScatter::kUnknown ||
         environment().heeds_reduce_op;
}

}  // namespace

std::optional<PassReason> why_passed(const Tensors& tensors,
                                     const c10d::AllreduceOptions& options) {
  if (!is_reduced(options.reduceOp.op_)) return PassReason::kReduceOp;
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
           output.device() == t.device() && output.sizes() == t.sizes();
  });
  if (!fit || outputs[0].size() != static_cast<std::size_t>(ranks)) return PassReason::kArguments;
  return std::nullopt;
}

/// Gloo copies into a run of its own here, so views of any strides keep their elements. It refuses
/// tensors of a GPU.
std::optional<PassReason> why_passed(const Tensors& tensors,
                                     const c10d::AllreduceCoalescedOptions& options) {
  if (!reduction_of(options.reduceOp.op_)) return PassReason::kReduceOp;
  if (tensors.empty()) return PassReason::kTensorCount;
  for (const at::Tensor& t : tensors) {
    if (!t.defined()) return PassReason::kTensorCount;
    if (!t.device().is_cpu()) return PassReason::kDevice;
    if (const auto reason = why_not_plain(t)) return reason;
    if (!element_type_of(t.scalar_type())) return PassReason::kElementType;
    if (t.numel() == 0) return PassReason::kEmpty;
    // Gloo wants one type, and refuses to write to what has a history.
    if (t.scalar_type() != tensors[0].scalar_type()) return PassReason::kArguments;
    if (t.requires_grad()) return PassReason::kArguments;
    // Gloo sums a tensor that is there twice once.
    const auto same = [&](const at::Tensor& other) { return other.data_ptr() == t.data_ptr(); };
    if (std::count_if(tensors.begin(), tensors.end(), same) > 1) return PassReason::kOverlap;
  }
  return std::nullopt;
}

Tensors column(const TensorLists& outputs, std::size_t i) {
  Tensors tensors;
  tensors.reserve(outputs.size());
  for (const Tensors& of_rank : outputs) tensors.push_back(of_rank[i]);
  return tensors;
}

std::optional<PassReason> why_coalesced_passed(const TensorLists& outputs, const Tensors& inputs,
                                               int ranks) {
  const bool fit =
      !inputs.empty() && std::all_of(outputs.begin(), outputs.end(), [&](const Tensors& of_rank) {
        return of_rank.size() == inputs.size();
      });
  if (!fit) return PassReason::kTensorCount;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool is_one_type =
        inputs[i].defined() && inputs[i].scalar_type() == inputs[0].scalar_type();
    if (!is_one_type) return PassReason::kArguments;
    if (!inputs[i].device().is_cpu()) return PassReason::kDevice;
    if (const auto reason = why_passed({column(outputs, i)}, {inputs[i]}, ranks)) return reason;
  }
  return std::nullopt;
}

/// Strides do not decide: what is no run of elements is copied into one, as Gloo does.
std::optional<PassReason> why_passed(const Tensors& outputs, const Tensors& inputs,
                                     const c10d::ReduceScatterOptions& options, int ranks) {
  if (!is_scattered(options.reduceOp.op_)) return PassReason::kReduceOp;
  if (inputs.empty() || inputs.size() != outputs.size()) return PassReason::kTensorCount;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor& given = inputs[i];
    const at::Tensor& output = outputs[i];
    if (!given.defined() || !output.defined()) return PassReason::kTensorCount;
    for (const at::Tensor& t : {given, output}) {
      if (const auto reason = why_not_plain(t)) return reason;
    }
    if (!element_type_of(given.scalar_type())) return PassReason::kElementType;
    if (given.numel() == 0) return PassReason::kEmpty;
    const bool fit = given.scalar_type() == output.scalar_type() &&
                     given.device() == output.device() && given.dim() == output.dim() &&
                     given.dim() > 0 && given.size(0) == output.size(0) * ranks &&
                     given.sizes().slice(1) == output.sizes().slice(1);
    if (!fit) return PassReason::kArguments;
  }
  return std::nullopt;
}

}  // namespace gradplane::shim
