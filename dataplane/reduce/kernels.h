// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "dataplane/model/element_type.h"
#include "dataplane/model/reduction.h"
#include "dataplane/model/wire_type.h"

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
  /// accumulator = wire + more: the first two contributions at once. The same bits as set(wire) and
  /// accumulate(more), with one pass over memory less.
  void (*add)(std::byte* accumulator, const std::byte* wire, const std::byte* more,
              std::size_t count) noexcept;
  /// wire = accumulator, rounded where the wire type is narrower.
  void (*finish)(std::byte* wire, const std::byte* accumulator, std::size_t count) noexcept;
};

/// The bits of the largest magnitude among fp32 elements: infinity and what is not a number are
/// larger than every number. 0 of none.
using LargestMagnitude = std::uint32_t (*)(const std::byte* elements, std::size_t count) noexcept;

/// All kernels for one instruction set.
struct Variant {
  std::string_view name;  // e.g. "avx2"
  Kernels fp32;
  Kernels fp64;
  Kernels fp16;
  Kernels bf16;
  Kernels int32;
  Kernels int64;
  Kernels int8;  // blocks of fp32 elements that go as int8
  LargestMagnitude largest_magnitude;

  const Kernels& kernels_for(ElementType type) const noexcept;
  const Kernels& kernels_for(WireType type) const noexcept;
};

/// The reference: portable, plain, and right by reading.
extern const Variant kScalar;

/// Those that this build has and this processor runs, slowest (kScalar) first; what follows takes
/// the last, which is chosen at the first call. Any thread.
std::span<const Variant* const> supported_variants() noexcept;

const Kernels& kernels_for(ElementType type) noexcept;

/// Of what else than a sum the largest and the smallest do not depend on the order of the
/// contributions: what is no number comes through, and -0 is smaller than 0. For all processors
/// alike. Any thread.
const Kernels& kernels_for(ElementType type, Reduction reduction) noexcept;

/// The arithmetic of blocks of fp32 elements in a wire type, whose accumulators are fp32. A block
/// of int8 begins with its scale: finish() makes it the largest magnitude / 127, so a block is read
/// and written from its first element on. finish() takes what can_hold() (wire_codec.h).
const Kernels& kernels_for(WireType type) noexcept;

std::uint32_t largest_magnitude(const std::byte* elements, std::size_t count) noexcept;

/// For blocks with one contribution: set() and then finish() give the same bits again, also those
/// that a conversion would change. Nothing can be accumulated. Any thread.
const Kernels& copying_kernels_for(ElementType type) noexcept;

}  // namespace gradplane::reduce
