// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "dataplane/reduce/kernels.h"
#include "dataplane/reduce/loops.h"
#include "dataplane/reduce/variants.h"

namespace gradplane::reduce {
namespace {

struct Sum {
  template <typename T>
  static T of(T a, T b) {
    if constexpr (std::integral<T>) {
      using Unsigned = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
      const T sum = a + b;
      return sum != sum ? std::numeric_limits<T>::quiet_NaN() : sum;
    }
  }
};

float int8_to_float(const std::byte* bytes, std::size_t index, float scale) {
  return static_cast<float>(load<std::int8_t>(bytes, index)) * scale;
}

void int8_set(std::byte* accumulator, const std::byte* wire, std::size_t count) noexcept {
  scalar_int8_set(accumulator, wire + kScaleBytes, load<float>(wire, 0), count);
}

void int8_accumulate(std::byte* accumulator, const std::byte* wire, std::size_t count) noexcept {
  scalar_int8_accumulate(accumulator, wire + kScaleBytes, load<float>(wire, 0), count);
}

void int8_add_two(std::byte* accumulator, const std::byte* wire, const std::byte* more,
                  std::size_t count) noexcept {
  int8_set(accumulator, wire, count);
  int8_accumulate(accumulator, more, count);
}

std::uint32_t largest_magnitude_of(const std::byte* elements, std::size_t count) noexcept {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    largest = std::max(largest, load<std::uint32_t>(elements, i) & 0x7fffffffu);
  }
  return largest;
}

void int8_finish(std::byte* wire, const std::byte* accumulator, std::size_t count) noexcept {
  const auto largest = std::bit_cast<float>(largest_magnitude_of(accumulator, count));
  const float scale = largest / kLargestInt8;
  store(wire, 0, scale);
  scalar_int8_finish(wire + kScaleBytes, accumulator, scale, count);
}

constexpr Kernels kInt8{int8_set, int8_accumulate, int8_add_two, int8_finish};

}  // namespace

void scalar_int8_set(std::byte* accumulator, const std::byte* bytes, float scale,
                     std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) store(accumulator, i, int8_to_float(bytes, i, scale));
}

void scalar_int8_accumulate(std::byte* accumulator, const std::byte* bytes, float scale,
                            std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    store(accumulator, i, Sum::of(load<float>(accumulator, i), int8_to_float(bytes, i, scale)));
  }
}

/// The scale of a block of zeros is 0, and dividing by it would give NaN.
void scalar_int8_finish(std::byte* bytes, const std::byte* accumulator, float scale,
                        std::size_t count) noexcept {
  if (scale == 0) {
    std::fill_n(bytes, count, std::byte{0});
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const long nearest = std::lrint(load<float>(accumulator, i) / scale);
    store(bytes, i, static_cast<std::int8_t>(nearest));
  }
}

constinit const Variant kScalar{.name = "scalar",
                                .fp32 = kKernels<Plain<float>, Sum>,
                                .fp64 = kKernels<Plain<double>, Sum>,
                                .fp16 = kKernels<Half, Sum>,
                                .bf16 = kKernels<Bfloat, Sum>,
                                .int32 = kKernels<Plain<std::int32_t>, Sum>,
                                .int64 = kKernels<Plain<std::int64_t>, Sum>,
                                .int8 = kInt8,
                                .largest_magnitude = largest_magnitude_of};

}  // namespace gradplane::reduce
