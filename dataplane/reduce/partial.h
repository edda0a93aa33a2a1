// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>

#include "dataplane/model/element_type.h"

/// Arithmetic for blocks that lack contributions. It is rarer than sums, so its loops are simple.
/// Only for floating-point types. `count` is in elements, and memory needs no alignment. Any
/// thread; nothing allocates or throws.
namespace gradplane::reduce {

/// accumulator *= factor, for accumulator elements. A NaN stays a NaN.
void scale(ElementType type, std::byte* accumulator, double factor, std::size_t count) noexcept;

/// Whether every wire element is finite.
bool is_finite(ElementType type, const std::byte* wire, std::size_t count) noexcept;

/// The sum of the squares of wire elements.
double energy(ElementType type, const std::byte* wire, std::size_t count) noexcept;

}  // namespace gradplane::reduce
