// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "dataplane/reduce/kernels.h"

namespace gradplane::reduce {

/// The vector variants that a build may have. To be called only on a processor that has what
/// kernels.cc asks for.
extern const Variant kAvx2;
extern const Variant kAvx512;
extern const Variant kNeon;

/// Elements of an int8 block, behind its scale: what a vector variant leaves over.
void scalar_int8_set(std::byte* accumulator, const std::byte* bytes, float scale,
                     std::size_t count) noexcept;
void scalar_int8_accumulate(std::byte* accumulator, const std::byte* bytes, float scale,
                            std::size_t count) noexcept;
void scalar_int8_finish(std::byte* bytes, const std::byte* accumulator, float scale,
                        std::size_t count) noexcept;

/// The scale of an int8 block is its largest magnitude / this.
inline constexpr float kLargestInt8 = 127;

}  // namespace gradplane::reduce
