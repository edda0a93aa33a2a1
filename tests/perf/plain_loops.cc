// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/perf/plain_loops.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "dataplane/model/wire_type.h"

namespace gradplane::testing {
namespace {

using std::bit_cast;
using Bits = std::uint32_t;

template <typename T>
struct Plain {
  using Wire = T;
  using Sum = T;
  static Sum widen(Wire w) { return w; }
  static Wire narrow(Sum s) { return s; }
};

/// A sum of these is just a + b, without a check for NaN.
struct Unchecked {
  float value;
  friend Unchecked sum_of(Unchecked a, Unchecked b) { return {a.value + b.value}; }
};

/// As dataplane/reduce/half.h, but all cases are computed, and one of them is chosen.
struct Half {
  using Wire = std::uint16_t;
  using Sum = float;
  static Sum widen(Wire w) {
    const Bits magnitude = w & 0x7fffu;
    const Bits normal = (magnitude << 13) + (112u << 23);
    const Bits quiet = magnitude > 0x7c00u ? 0x00400000u : 0u;
    const Bits special = normal + (112u << 23);
    const Bits subnormal =
        bit_cast<Bits>(static_cast<float>(static_cast<int>(magnitude)) * 0x1p-24f);
    const Bits finite = magnitude < 0x400u ? subnormal : normal;
    const Bits value = magnitude >= 0x7c00u ? special | quiet : finite;
    return bit_cast<float>(value | (static_cast<Bits>(w & 0x8000u) << 16));
  }
  static Wire narrow(Sum s) {
    const Bits bits = bit_cast<Bits>(s);
    const Bits magnitude = bits & 0x7fffffffu;
    const Bits rebiased = magnitude - (112u << 23);
    const Bits normal = (rebiased + 0xfffu + ((rebiased >> 13) & 1u)) >> 13;
    // With 0.5 added, the lowest bit of the sum is that of the smallest half.
    const Bits subnormal = bit_cast<Bits>(bit_cast<float>(magnitude) + 0.5f) - bit_cast<Bits>(0.5f);
    const Bits nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
    Bits value = magnitude < 0x38800000u ? subnormal : normal;
    value = magnitude >= 0x477ff000u ? 0x7c00u : value;
    value = magnitude > 0x7f800000u ? nan : value;
    return static_cast<Wire>(value | ((bits >> 16) & 0x8000u));
  }
};

struct Bfloat {
  using Wire = std::uint16_t;
  using Sum = float;
  static Sum widen(Wire w) {
    const Bits bits = static_cast<Bits>(w) << 16;
    return bit_cast<float>((bits & 0x7fffffffu) > 0x7f800000u ? bits | 0x00400000u : bits);
  }
  static Wire narrow(Sum s) {
    const Bits bits = bit_cast<Bits>(s);
    const Bits rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const Bits nan = (bits >> 16) | 0x40u;
    return static_cast<Wire>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
  }
};

template <typename T>
T sum_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    const T sum = a + b;
    return sum != sum ? std::numeric_limits<T>::quiet_NaN() : sum;
  }
}

template <typename T>
T* elements(std::byte* bytes) {
  return reinterpret_cast<T*>(bytes);
}
template <typename T>
const T* elements(const std::byte* bytes) {
  return reinterpret_cast<const T*>(bytes);
}

template <typename E>
struct Loops {
  using Wire = typename E::Wire;
  using Sum = typename E::Sum;

  static void set(std::byte* accumulator, const std::byte* wire, std::size_t count) noexcept {
    Sum* __restrict sums = elements<Sum>(accumulator);
    const Wire* __restrict from = elements<Wire>(wire);
    for (std::size_t i = 0; i < count; ++i) sums[i] = E::widen(from[i]);
  }
  static void accumulate(std::byte* accumulator, const std::byte* wire,
                         std::size_t count) noexcept {
    Sum* __restrict sums = elements<Sum>(accumulator);
    const Wire* __restrict from = elements<Wire>(wire);
    for (std::size_t i = 0; i < count; ++i) sums[i] = sum_of(sums[i], E::widen(from[i]));
  }
  static void add(std::byte* accumulator, const std::byte* wire, const std::byte* more,
                  std::size_t count) noexcept {
    Sum* __restrict sums = elements<Sum>(accumulator);
    const Wire* __restrict a = elements<Wire>(wire);
    const Wire* __restrict b = elements<Wire>(more);
    for (std::size_t i = 0; i < count; ++i) sums[i] = sum_of(E::widen(a[i]), E::widen(b[i]));
  }
  static void finish(std::byte* wire, const std::byte* accumulator, std::size_t count) noexcept {
    Wire* __restrict to = elements<Wire>(wire);
    const Sum* __restrict sums = elements<Sum>(accumulator);
    for (std::size_t i = 0; i < count; ++i) to[i] = E::narrow(sums[i]);
  }
};

template <typename E>
constexpr reduce::Kernels kLoops{Loops<E>::set, Loops<E>::accumulate, Loops<E>::add,
                                 Loops<E>::finish};

void int8_set(std::byte* accumulator, const std::byte* wire, std::size_t count) noexcept {
  float* __restrict sums = elements<float>(accumulator);
  const auto* __restrict from = elements<std::int8_t>(wire + kScaleBytes);
  const float scale = *elements<float>(wire);
  for (std::size_t i = 0; i < count; ++i) sums[i] = static_cast<float>(from[i]) * scale;
}
void int8_accumulate(std::byte* accumulator, const std::byte* wire, std::size_t count) noexcept {
  float* __restrict sums = elements<float>(accumulator);
  const auto* __restrict from = elements<std::int8_t>(wire + kScaleBytes);
  const float scale = *elements<float>(wire);
  for (std::size_t i = 0; i < count; ++i) {
    sums[i] = sum_of(sums[i], static_cast<float>(from[i]) * scale);
  }
}
void int8_add(std::byte* accumulator, const std::byte* wire, const std::byte* more,
              std::size_t count) noexcept {
  float* __restrict sums = elements<float>(accumulator);
  const auto* __restrict a = elements<std::int8_t>(wire + kScaleBytes);
  const auto* __restrict b = elements<std::int8_t>(more + kScaleBytes);
  const float scale_a = *elements<float>(wire);
  const float scale_b = *elements<float>(more);
  for (std::size_t i = 0; i < count; ++i) {
    sums[i] = sum_of(static_cast<float>(a[i]) * scale_a, static_cast<float>(b[i]) * scale_b);
  }
}
void int8_finish(std::byte* wire, const std::byte* accumulator, std::size_t count) noexcept {
  auto* __restrict to = elements<std::int8_t>(wire + kScaleBytes);
  const float* __restrict sums = elements<float>(accumulator);
  const Bits* __restrict bits = elements<Bits>(accumulator);
  Bits largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Bits magnitude = bits[i] & 0x7fffffffu;
    largest = largest < magnitude ? magnitude : largest;
  }
  const float scale = bit_cast<float>(largest) / 127;
  *elements<float>(wire) = scale;
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = static_cast<std::int8_t>(static_cast<int>(std::rint(sums[i] / scale)));
  }
}
constexpr reduce::Kernels kInt8{int8_set, int8_accumulate, int8_add, int8_finish};

}  // namespace

const reduce::Kernels& plain_loops_for(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return kLoops<Plain<float>>;
    case ElementType::kFloat64:
      return kLoops<Plain<double>>;
    case ElementType::kFloat16:
      return kLoops<Half>;
    case ElementType::kBfloat16:
      return kLoops<Bfloat>;
    case ElementType::kInt32:
      return kLoops<Plain<std::int32_t>>;
    case ElementType::kInt64:
      break;
  }
  return kLoops<Plain<std::int64_t>>;
}

const reduce::Kernels& plain_float_loops() {
  return kLoops<Plain<Unchecked>>;
}

const reduce::Kernels& plain_int8_loops() {
  return kInt8;
}

}  // namespace gradplane::testing
