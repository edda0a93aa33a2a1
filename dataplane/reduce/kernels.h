// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "dataplane/model/element_type.h"

namespace gradplane::reduce {

/// The arithmetic of one element type over raw bytes. `count` is in elements; wire elements have
/// element_bytes(), accumulator elements accumulator_bytes(). Neither needs any alignment; the two
/// must not overlap. Any thread; no call allocates, throws or keeps state.
///
/// Every variant gives the same bits for the same input. Integers wrap. Half precision is summed as
/// fp32 and rounded once, to nearest, ties to even. A sum that is not a number is the one canonical
/// quiet NaN of its type, because which operand's payload survives an addition depends on how the
/// compiler ordered them.
struct Kernels {
  /// accumulator = wire: the first contribution.
  void (*set)(std::byte* accumulator, const std::byte* wire, std::size_t count) noexcept;
  /// accumulator += wire: every other contribution.
  void (*accumulate)(std::byte* accumulator, const std::byte* wire, std::size_t count) noexcept;
  /// wire = accumulator, rounded where the wire type is narrower.
  void (*finish)(std::byte* wire, const std::byte* accumulator, std::size_t count) noexcept;
};

/// The fastest kernels that this processor runs; chosen at the first call. Any thread.
const Kernels& kernels_for(ElementType type) noexcept;

/// The reference: portable, plain, and right by reading. Any thread.
const Kernels& scalar_kernels_for(ElementType type) noexcept;

/// For blocks with one contribution: set() and then finish() give the same bits again, also those
/// that a conversion would change. Nothing can be accumulated. Any thread.
const Kernels& copying_kernels_for(ElementType type) noexcept;

/// One way to compute, e.g. "avx2".
struct Variant {
  std::string_view name;
  const Kernels& (*kernels_for)(ElementType type) noexcept;
};

/// Those that this build has and this processor runs, slowest (scalar) first; kernels_for() is the
/// last. Any thread.
std::span<const Variant> supported_variants() noexcept;

}  // namespace gradplane::reduce
