// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>

#include "dataplane/model/wire_type.h"
#include "dataplane/reduce/kernels.h"

/// Blocks of fp32 elements in a wire type. Memory needs no alignment. Any thread; no call
/// allocates, throws or keeps state. Every processor gives the same bits.
namespace gradplane::reduce {

/// Whether a block stays finite in a wire type: no element is infinite or not a number, or becomes
/// so by rounding. Of int8 also whether its scale is a normal number, so that what is rounded is at
/// most half of it. Every block fits kElements.
bool can_hold(WireType wire, const std::byte* elements, std::size_t count) noexcept;

/// The wire type of a block that is to go in `wanted`: kElements where that cannot hold it.
inline WireType fitting(WireType wanted, const std::byte* elements, std::size_t count) noexcept {
  return can_hold(wanted, elements, count) ? wanted : WireType::kElements;
}

/// What can_hold() of the elements, rounded to nearest, ties to even: wire_bytes() of it.
inline void encode(WireType wire, std::byte* out, const std::byte* elements,
                   std::size_t count) noexcept {
  kernels_for(wire).finish(out, elements, count);
}
inline void decode(WireType wire, std::byte* elements, const std::byte* bytes,
                   std::size_t count) noexcept {
  kernels_for(wire).set(elements, bytes, count);
}

/// error = elements - what is left of them on the wire. It is exact, and finite where the block
/// can_hold() them.
void rounding_error(WireType wire, std::byte* error, const std::byte* elements,
                    const std::byte* bytes, std::size_t count) noexcept;

}  // namespace gradplane::reduce
