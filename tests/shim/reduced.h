// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <type_traits>

#include "dataplane/model/reduction.h"

namespace gradplane::test {

/// The expected reduction of two contributions, computed without the kernels under test. `T` is
/// signed for integers, whose sums and products wrap around.
template <typename T>
T reduced(T a, T b, Reduction reduction) {
  if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    if (reduction == Reduction::kSum || reduction == Reduction::kProduct) {
      const auto x = static_cast<Unsigned>(a), y = static_cast<Unsigned>(b);
      return static_cast<T>(reduction == Reduction::kSum ? x + y : x * y);
    }
  } else if constexpr (std::is_integral_v<T>) {
    using Signed = std::make_signed_t<T>;
    return static_cast<T>(reduced(static_cast<Signed>(a), static_cast<Signed>(b), reduction));
  }
  switch (reduction) {
    case Reduction::kSum:
      return static_cast<T>(a + b);
    case Reduction::kMax:
      return std::max(a, b);
    case Reduction::kMin:
      return std::min(a, b);
    case Reduction::kProduct:
      return static_cast<T>(a * b);
  }
  return a;
}

}  // namespace gradplane::test
