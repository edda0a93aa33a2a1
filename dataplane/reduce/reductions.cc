// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
//
// Maximum, minimum and product of contributions. Programs use them rarely and for few numbers, so
// one variant serves all processors: loops that compilers vectorise.
#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "dataplane/reduce/kernels.h"
#include "dataplane/reduce/loops.h"

namespace gradplane::reduce {
namespace {

template <std::floating_point T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// A NaN makes the result a NaN, as in maximum and minimum of IEEE 754-2019, and -0 is smaller than
/// 0. So the result does not depend on the order of the contributions.
template <std::floating_point T>
T with_nans(T a, T b, T otherwise) {
  return a != a || b != b ? std::numeric_limits<T>::quiet_NaN() : otherwise;
}

struct Max {
  template <std::integral T>
  static T of(T a, T b) {
    return a > b ? a : b;
  }
  template <std::floating_point T>
  static T of(T a, T b) {
    const T positive = std::bit_cast<T>(std::bit_cast<BitsOf<T>>(a) & std::bit_cast<BitsOf<T>>(b));
    return with_nans(a, b, a == b ? positive : (a > b ? a : b));
  }
};

struct Min {
  template <std::integral T>
  static T of(T a, T b) {
    return a < b ? a : b;
  }
  template <std::floating_point T>
  static T of(T a, T b) {
    const T negative = std::bit_cast<T>(std::bit_cast<BitsOf<T>>(a) | std::bit_cast<BitsOf<T>>(b));
    return with_nans(a, b, a == b ? negative : (a < b ? a : b));
  }
};

struct Product {
  template <std::integral T>
  static T of(T a, T b) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b));
  }
  template <std::floating_point T>
  static T of(T a, T b) {
    const T product = a * b;
    return product != product ? std::numeric_limits<T>::quiet_NaN() : product;
  }
};

template <typename Combine>
const Kernels& reducing(ElementType type) noexcept {
  switch (type) {
    case ElementType::kFloat32:
      return kKernels<Plain<float>, Combine>;
    case ElementType::kFloat64:
      return kKernels<Plain<double>, Combine>;
    case ElementType::kFloat16:
      return kKernels<Half, Combine>;
    case ElementType::kBfloat16:
      return kKernels<Bfloat, Combine>;
    case ElementType::kInt32:
      return kKernels<Plain<std::int32_t>, Combine>;
    case ElementType::kInt64:
      break;
  }
  return kKernels<Plain<std::int64_t>, Combine>;
}

}  // namespace

const Kernels& kernels_for(ElementType type, Reduction reduction) noexcept {
  switch (reduction) {
    case Reduction::kSum:
      break;
    case Reduction::kMax:
      return reducing<Max>(type);
    case Reduction::kMin:
      return reducing<Min>(type);
    case Reduction::kProduct:
      return reducing<Product>(type);
  }
  return kernels_for(type);
}

}  // namespace gradplane::reduce
