// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "dataplane/reduce/kernels.h"

namespace gradplane::reduce {

/// The vector variants that a build may have. Call them only on a processor with the features that
/// kernels.cc checks.
extern const Variant kAvx2;
extern const Variant kAvx512;
extern const Variant kNeon;

/// Kernels for elements of an int8 block, without its scale: for those that remain after a vector
/// variant's last whole vector.
void scalar_int8_set(std::byte* accumulator, const std::byte* bytes, float scale,
                     std::size_t count) noexcept;
void scalar_int8_accumulate(std::byte* accumulator, const std::byte* bytes, float scale,
                            std::size_t count) noexcept;
void scalar_int8_finish(std::byte* bytes, const std::byte* accumulator, float scale,
                        std::size_t count) noexcept;

/// The scale of an int8 block is its largest magnitude / this.
inline constexpr float kLargestInt8 = 127;

}  // namespace gradplane::reduce
