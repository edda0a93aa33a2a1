// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>

#include "dataplane/model/element_type.h"

/// Arithmetic of blocks that lack contributions: rarer than sums, so plain. Floating types only;
/// `count` is in elements, memory needs no alignment. Any thread; nothing allocates or throws.
namespace gradplane::reduce {

/// accumulator *= factor, in accumulator elements. What is not a number stays so.
void scale(ElementType type, std::byte* accumulator, double factor, std::size_t count) noexcept;

/// Whether no wire element is infinite or not a number.
bool is_finite(ElementType type, const std::byte* wire, std::size_t count) noexcept;

/// Sum of the squares of wire elements.
double energy(ElementType type, const std::byte* wire, std::size_t count) noexcept;

}  // namespace gradplane::reduce
