// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/reduce/partial.h"

#include <cmath>
#include <cstdint>

#include "dataplane/base/assert.h"
#include "dataplane/reduce/loops.h"

namespace gradplane::reduce {
namespace {

template <typename T>
void scale_as(std::byte* values, double factor, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const T scaled = static_cast<T>(load<T>(values, i) * static_cast<T>(factor));
    store(values, i, scaled);
  }
}

double value_at(ElementType type, const std::byte* wire, std::size_t index) {
  switch (type) {
    case ElementType::kFloat32:
      return load<float>(wire, index);
    case ElementType::kFloat64:
      return load<double>(wire, index);
    case ElementType::kFloat16:
      return half_to_float(load<std::uint16_t>(wire, index));
    case ElementType::kBfloat16:
      return bfloat_to_float(load<std::uint16_t>(wire, index));
    case ElementType::kInt32:
    case ElementType::kInt64:
      break;
  }
  GP_ASSERT(!"integers are exact: nothing of them is ever partial");
  return 0;
}

}  // namespace

void scale(ElementType type, std::byte* accumulator, double factor, std::size_t count) noexcept {
  if (type == ElementType::kFloat64) {
    scale_as<double>(accumulator, factor, count);
  } else {
    scale_as<float>(accumulator, factor, count);
  }
}

bool is_finite(ElementType type, const std::byte* wire, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    if (!std::isfinite(value_at(type, wire, i))) return false;
  }
  return true;
}

double energy(ElementType type, const std::byte* wire, std::size_t count) noexcept {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double value = value_at(type, wire, i);
    sum += value * value;
  }
  return sum;
}

}  // namespace gradplane::reduce
