// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "dataplane/reduce/variants.h"

/// The loops that all vector variants share. Elements after the last whole vector go to the scalar
/// kernels.
///
/// A file that includes this header is compiled with its own flags, so it must not emit a symbol
/// that the linker could pick for the rest of the program. Therefore its types are in an anonymous
/// namespace, which keeps all instantiations in the file, and neither the file nor this header
/// calls an inline function of the C++ library.
namespace gradplane::reduce {

/// Kernels for types that are the same on the wire and in sums. `Ops` has kLanes, kBytes of an
/// element, kKernels (its member of Variant), and load(), store() and add() for one vector.
template <typename Ops>
struct PlainKernels {
  static void copy(std::byte* to, const std::byte* from, std::size_t count) noexcept {
    const std::size_t whole = count - count % Ops::kLanes;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < whole; i += Ops::kLanes) {
      Ops::store(to + i * Ops::kBytes, Ops::load(from + i * Ops::kBytes));
    }
    const std::size_t at = whole * Ops::kBytes;
    (kScalar.*Ops::kKernels).set(to + at, from + at, count - whole);
  }

  static void add(std::byte* accumulator, const std::byte* wire, const std::byte* more,
                  std::size_t count) noexcept {
    const std::size_t whole = count - count % Ops::kLanes;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < whole; i += Ops::kLanes) {
      const std::size_t at = i * Ops::kBytes;
      Ops::store(accumulator + at, Ops::add(Ops::load(wire + at), Ops::load(more + at)));
    }
    const std::size_t at = whole * Ops::kBytes;
    (kScalar.*Ops::kKernels).add(accumulator + at, wire + at, more + at, count - whole);
  }

  /// Unrolled to two vectors: with four, data in memory may take a sixth longer, and data in the
  /// cache gains nothing.
  static void accumulate(std::byte* accumulator, const std::byte* wire,
                         std::size_t count) noexcept {
    const std::size_t whole = count - count % Ops::kLanes;
#pragma GCC unroll 2
    for (std::size_t i = 0; i < whole; i += Ops::kLanes) {
      std::byte* at = accumulator + i * Ops::kBytes;
      Ops::store(at, Ops::add(Ops::load(at), Ops::load(wire + i * Ops::kBytes)));
    }
    const std::size_t at = whole * Ops::kBytes;
    (kScalar.*Ops::kKernels).accumulate(accumulator + at, wire + at, count - whole);
  }
};

/// Kernels for two-byte types that are summed as fp32. `Ops` has kLanes, kKernels, and for one
/// vector widen(wire) and load(accumulator), which return a register, store(accumulator, register),
/// narrow(wire, register), add(register, register).
template <typename Ops>
struct NarrowKernels {
  static constexpr std::size_t kWire = 2;
  static constexpr std::size_t kSum = 4;

  static void set(std::byte* accumulator, const std::byte* wire, std::size_t count) noexcept {
    const std::size_t whole = count - count % Ops::kLanes;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < whole; i += Ops::kLanes) {
      Ops::store(accumulator + i * kSum, Ops::widen(wire + i * kWire));
    }
    (kScalar.*Ops::kKernels).set(accumulator + whole * kSum, wire + whole * kWire, count - whole);
  }

  static void accumulate(std::byte* accumulator, const std::byte* wire,
                         std::size_t count) noexcept {
    const std::size_t whole = count - count % Ops::kLanes;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < whole; i += Ops::kLanes) {
      std::byte* at = accumulator + i * kSum;
      Ops::store(at, Ops::add(Ops::load(at), Ops::widen(wire + i * kWire)));
    }
    (kScalar.*Ops::kKernels)
        .accumulate(accumulator + whole * kSum, wire + whole * kWire, count - whole);
  }

  static void add(std::byte* accumulator, const std::byte* wire, const std::byte* more,
                  std::size_t count) noexcept {
    const std::size_t whole = count - count % Ops::kLanes;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < whole; i += Ops::kLanes) {
      Ops::store(accumulator + i * kSum,
                 Ops::add(Ops::widen(wire + i * kWire), Ops::widen(more + i * kWire)));
    }
    (kScalar.*Ops::kKernels)
        .add(accumulator + whole * kSum, wire + whole * kWire, more + whole * kWire, count - whole);
  }

  static void finish(std::byte* wire, const std::byte* accumulator, std::size_t count) noexcept {
    const std::size_t whole = count - count % Ops::kLanes;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < whole; i += Ops::kLanes) {
      Ops::narrow(wire + i * kWire, Ops::load(accumulator + i * kSum));
    }
    (kScalar.*Ops::kKernels)
        .finish(wire + whole * kWire, accumulator + whole * kSum, count - whole);
  }
};

/// The largest magnitude of fp32 elements. `Ops` has kLanes, no_magnitude(), larger(so far,
/// elements of one vector) and largest(register).
template <typename Ops>
std::uint32_t largest_magnitude_of(const std::byte* elements, std::size_t count) noexcept {
  const std::size_t whole = count - count % Ops::kLanes;
  auto so_far = Ops::no_magnitude();
#pragma GCC unroll 4
  for (std::size_t i = 0; i < whole; i += Ops::kLanes) {
    so_far = Ops::larger(so_far, elements + i * sizeof(float));
  }
  const std::uint32_t of_vectors = Ops::largest(so_far);
  const std::uint32_t of_rest =
      kScalar.largest_magnitude(elements + whole * sizeof(float), count - whole);
  return of_vectors < of_rest ? of_rest : of_vectors;
}

/// Kernels for int8 blocks, which begin with their scale. `Ops` is that of fp32, and also has
/// all(float), which fills a register, widen_int8(bytes, scales) and narrow_int8(bytes, register,
/// scales).
template <typename Ops>
struct Int8Kernels {
  static constexpr std::size_t kSum = sizeof(float);

  static float scale_of(const std::byte* wire) noexcept {
    float scale;
    __builtin_memcpy(&scale, wire, sizeof scale);
    return scale;
  }

  static void set(std::byte* accumulator, const std::byte* wire, std::size_t count) noexcept {
    const float scale = scale_of(wire);
    const auto scales = Ops::all(scale);
    const std::byte* bytes = wire + kScaleBytes;
    const std::size_t whole = count - count % Ops::kLanes;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < whole; i += Ops::kLanes) {
      Ops::store(accumulator + i * kSum, Ops::widen_int8(bytes + i, scales));
    }
    scalar_int8_set(accumulator + whole * kSum, bytes + whole, scale, count - whole);
  }

  static void accumulate(std::byte* accumulator, const std::byte* wire,
                         std::size_t count) noexcept {
    const float scale = scale_of(wire);
    const auto scales = Ops::all(scale);
    const std::byte* bytes = wire + kScaleBytes;
    const std::size_t whole = count - count % Ops::kLanes;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < whole; i += Ops::kLanes) {
      std::byte* at = accumulator + i * kSum;
      Ops::store(at, Ops::add(Ops::load(at), Ops::widen_int8(bytes + i, scales)));
    }
    scalar_int8_accumulate(accumulator + whole * kSum, bytes + whole, scale, count - whole);
  }

  static void add(std::byte* accumulator, const std::byte* wire, const std::byte* more,
                  std::size_t count) noexcept {
    const float scale = scale_of(wire);
    const float scale_of_more = scale_of(more);
    const auto scales = Ops::all(scale);
    const auto scales_of_more = Ops::all(scale_of_more);
    const std::byte* bytes = wire + kScaleBytes;
    const std::byte* bytes_of_more = more + kScaleBytes;
    const std::size_t whole = count - count % Ops::kLanes;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < whole; i += Ops::kLanes) {
      Ops::store(accumulator + i * kSum,
                 Ops::add(Ops::widen_int8(bytes + i, scales),
                          Ops::widen_int8(bytes_of_more + i, scales_of_more)));
    }
    std::byte* rest = accumulator + whole * kSum;
    scalar_int8_set(rest, bytes + whole, scale, count - whole);
    scalar_int8_accumulate(rest, bytes_of_more + whole, scale_of_more, count - whole);
  }

  static void finish(std::byte* wire, const std::byte* accumulator, std::size_t count) noexcept {
    const std::uint32_t largest = largest_magnitude_of<Ops>(accumulator, count);
    const float scale = __builtin_bit_cast(float, largest) / kLargestInt8;
    __builtin_memcpy(wire, &scale, sizeof scale);
    std::byte* bytes = wire + kScaleBytes;
    const auto scales = Ops::all(scale);
    const std::size_t whole = scale == 0 ? 0 : count - count % Ops::kLanes;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < whole; i += Ops::kLanes) {
      Ops::narrow_int8(bytes + i, Ops::load(accumulator + i * kSum), scales);
    }
    scalar_int8_finish(bytes + whole, accumulator + whole * kSum, scale, count - whole);
  }
};

template <typename Ops>
consteval Kernels plain_kernels() {
  using K = PlainKernels<Ops>;
  return {K::copy, K::accumulate, K::add, K::copy};
}
template <typename K>
consteval Kernels all_of() {
  return {K::set, K::accumulate, K::add, K::finish};
}

/// The variant of an instruction set. `Set` has the Ops of each type.
template <typename Set>
consteval Variant variant_of(std::string_view name) {
  return {.name = name,
          .fp32 = plain_kernels<typename Set::Fp32>(),
          .fp64 = plain_kernels<typename Set::Fp64>(),
          .fp16 = all_of<NarrowKernels<typename Set::Fp16>>(),
          .bf16 = all_of<NarrowKernels<typename Set::Bf16>>(),
          .int32 = plain_kernels<typename Set::Int32>(),
          .int64 = plain_kernels<typename Set::Int64>(),
          .int8 = all_of<Int8Kernels<typename Set::Fp32>>(),
          .largest_magnitude = largest_magnitude_of<typename Set::Fp32>};
}

}  // namespace gradplane::reduce
