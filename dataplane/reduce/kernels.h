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
/// element_bytes(), accumulator elements accumulator_bytes(). Neither needs alignment, and they
/// must not overlap. Any thread; no call allocates, throws or keeps state.
///
/// Every variant gives the same bits for the same input. Integers wrap. Half precision is summed as
/// fp32 and rounded once, to nearest, ties to even. A sum that is a NaN is the canonical quiet NaN
/// of its type, because which operand's payload survives an addition depends on the compiler's
/// order of operands.
struct Kernels {
  /// accumulator = wire: the first contribution.
  void (*set)(std::byte* accumulator, const std::byte* wire, std::size_t count) noexcept;
  /// accumulator += wire: every other contribution.
  void (*accumulate)(std::byte* accumulator, const std::byte* wire, std::size_t count) noexcept;
  /// accumulator = wire + more: the first two contributions at once. It gives the same bits as
  /// set(wire) and accumulate(more), but saves one pass over memory.
  void (*add)(std::byte* accumulator, const std::byte* wire, const std::byte* more,
              std::size_t count) noexcept;
  /// wire = accumulator, rounded if the wire type is narrower.
  void (*finish)(std::byte* wire, const std::byte* accumulator, std::size_t count) noexcept;
};

/// The bits of the largest magnitude among fp32 elements. Infinity and NaN count as larger than
/// every number. 0 if there are no elements.
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
  Kernels int8;  // kernels for fp32 blocks that go as int8
  LargestMagnitude largest_magnitude;

  const Kernels& kernels_for(ElementType type) const noexcept;
  const Kernels& kernels_for(WireType type) const noexcept;
};

/// The reference: portable and simple.
extern const Variant kScalar;

/// The variants that this build has and this processor supports, the slowest (kScalar) first. The
/// functions below use the last one, which is chosen at the first call. Any thread.
std::span<const Variant* const> supported_variants() noexcept;

const Kernels& kernels_for(ElementType type) noexcept;

/// Kernels of a reduction. Maximum and minimum do not depend on the order of the contributions: a
/// NaN makes the result a NaN, and -0 is smaller than 0. Kernels other than a sum's are the same
/// for all processors. Any thread.
const Kernels& kernels_for(ElementType type, Reduction reduction) noexcept;

/// Kernels for fp32 blocks in a wire type, whose accumulators are fp32. An int8 block begins with
/// its scale, which finish() sets to the largest magnitude / 127, so kernels must get whole blocks.
/// finish() takes only elements that can_hold() accepts (wire_codec.h).
const Kernels& kernels_for(WireType type) noexcept;

std::uint32_t largest_magnitude(const std::byte* elements, std::size_t count) noexcept;

/// Kernels for blocks with one contribution: set() and then finish() return the same bits, even
/// those that a conversion would change. They cannot accumulate. Any thread.
const Kernels& copying_kernels_for(ElementType type) noexcept;

}  // namespace gradplane::reduce
