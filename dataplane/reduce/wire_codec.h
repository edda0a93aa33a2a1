// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>

#include "dataplane/model/wire_type.h"
#include "dataplane/reduce/kernels.h"

/// Conversion of fp32 blocks to and from a wire type. Memory needs no alignment. Any thread; no
/// call allocates, throws or keeps state. Every processor gives the same bits.
namespace gradplane::reduce {

/// Whether a block stays finite in a wire type: no element is infinite or NaN, or becomes so by
/// rounding. For int8 the scale must also be a normal number, so that rounding errors are at most
/// half of it. Every block fits kElements.
bool can_hold(WireType wire, const std::byte* elements, std::size_t count) noexcept;

/// The wire type of a block that should go in `wanted`: kElements if `wanted` cannot hold it.
inline WireType fitting(WireType wanted, const std::byte* elements, std::size_t count) noexcept {
  return can_hold(wanted, elements, count) ? wanted : WireType::kElements;
}

/// Converts elements that can_hold() accepts, rounding to nearest, ties to even. Writes
/// wire_bytes().
inline void encode(WireType wire, std::byte* out, const std::byte* elements,
                   std::size_t count) noexcept {
  kernels_for(wire).finish(out, elements, count);
}
inline void decode(WireType wire, std::byte* elements, const std::byte* bytes,
                   std::size_t count) noexcept {
  kernels_for(wire).set(elements, bytes, count);
}

/// error = elements - their values on the wire. It is exact, and finite if can_hold() accepts the
/// elements.
void rounding_error(WireType wire, std::byte* error, const std::byte* elements,
                    const std::byte* bytes, std::size_t count) noexcept;

}  // namespace gradplane::reduce
