// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>

#include "dataplane/reduce/kernels.h"

/// The loops of a vector variant; avx2.cc supplies the operations of one vector. What is left over
/// after the last whole vector goes to the scalar kernels.
///
/// A variant is compiled with flags of their own, so nothing in it may end up as a symbol that
/// the linker could pick for the rest of the program: everything is in an anonymous namespace, and
/// no inline function of the C++ library is called.
namespace gradplane::reduce {
namespace {

/// `Ops` has kType, kLanes, kWireBytes, kAccumulatorBytes; and over one vector widen(wire) and
/// load(accumulator) to a register, store(accumulator, register), narrow(wire, register),
/// add(register, register).
template <typename Ops>
struct VectorKernels {
  static std::size_t whole(std::size_t count) noexcept { return count - count % Ops::kLanes; }

  static void set(std::byte* accumulator, const std::byte* wire, std::size_t count) noexcept {
    const std::size_t end = whole(count);
    for (std::size_t i = 0; i < end; i += Ops::kLanes) {
      Ops::store(accumulator + i * Ops::kAccumulatorBytes, Ops::widen(wire + i * Ops::kWireBytes));
    }
    scalar_kernels_for(Ops::kType)
        .set(accumulator + end * Ops::kAccumulatorBytes, wire + end * Ops::kWireBytes, count - end);
  }

  static void accumulate(std::byte* accumulator, const std::byte* wire,
                         std::size_t count) noexcept {
    const std::size_t end = whole(count);
    for (std::size_t i = 0; i < end; i += Ops::kLanes) {
      std::byte* at = accumulator + i * Ops::kAccumulatorBytes;
      Ops::store(at, Ops::add(Ops::load(at), Ops::widen(wire + i * Ops::kWireBytes)));
    }
    scalar_kernels_for(Ops::kType)
        .accumulate(accumulator + end * Ops::kAccumulatorBytes, wire + end * Ops::kWireBytes,
                    count - end);
  }

  static void finish(std::byte* wire, const std::byte* accumulator, std::size_t count) noexcept {
    const std::size_t end = whole(count);
    for (std::size_t i = 0; i < end; i += Ops::kLanes) {
      Ops::narrow(wire + i * Ops::kWireBytes, Ops::load(accumulator + i * Ops::kAccumulatorBytes));
    }
    scalar_kernels_for(Ops::kType)
        .finish(wire + end * Ops::kWireBytes, accumulator + end * Ops::kAccumulatorBytes,
                count - end);
  }

  static constexpr Kernels kTable{set, accumulate, finish};
};

}  // namespace
}  // namespace gradplane::reduce
