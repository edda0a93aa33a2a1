// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <optional>

#include "trainer-shim/group/counters.h"
#include "trainer-shim/torch/originals.h"

/// Why a collective is not gradplane's and goes to the original, or nothing. What is asked here
/// comes out alike on all ranks of a correct program: they agree on the operation, on type and size
/// of the tensors, and on the root, but not on strides. A rank that carries what another one passes
/// through would wait for it until the group's timeout.
namespace gradplane::shim {

/// What Gloo's reduce_scatter makes of what a program asks for: it sums whatever that is (pytorch
/// issue 162338), does it, or one of the two, so that it has to tell itself.
enum class GloosScatter : std::uint8_t { kSums, kReduces, kUnknown };
inline constexpr GloosScatter kGloosScatter = GP_TORCH_AT_LEAST(2, 11)  ? GloosScatter::kReduces
                                              : GP_TORCH_AT_LEAST(2, 7) ? GloosScatter::kUnknown
                                                                        : GloosScatter::kSums;

std::optional<PassReason> why_passed(const Tensors& tensors, const c10d::AllreduceOptions& options);
std::optional<PassReason> why_passed(const Tensors& tensors, const c10d::BroadcastOptions& options,
                                     int ranks);
std::optional<PassReason> why_passed(const TensorLists& outputs, const Tensors& inputs, int ranks);

/// Of several tensors in one call.
std::optional<PassReason> why_passed(const Tensors& tensors,
                                     const c10d::AllreduceCoalescedOptions& options);
std::optional<PassReason> why_coalesced_passed(const TensorLists& outputs, const Tensors& inputs,
                                               int ranks);

/// The i-th of each rank's tensors.
Tensors column(const TensorLists& outputs, std::size_t i);

/// Of a reduce_scatter, in its form of several tensors.
std::optional<PassReason> why_passed(const Tensors& outputs, const Tensors& inputs,
                                     const c10d::ReduceScatterOptions& options, int ranks);

}  // namespace gradplane::shim
