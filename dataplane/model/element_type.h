// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gradplane {

/// The type of a tensor's elements. The numbers are on the wire and in shared memory: never change
/// one.
enum class ElementType : std::uint8_t {
  kFloat32 = 1,
  kFloat64 = 2,
  kFloat16 = 3,
  kBfloat16 = 4,
  kInt32 = 5,
  kInt64 = 6,
};

inline constexpr std::array kElementTypes = {ElementType::kFloat32, ElementType::kFloat64,
                                             ElementType::kFloat16, ElementType::kBfloat16,
                                             ElementType::kInt32,   ElementType::kInt64};

constexpr bool is_element_type(std::uint8_t raw) {
  return raw >= 1 && raw <= 6;
}

/// Bytes of one element in a trainer's buffer and on the wire.
constexpr std::size_t element_bytes(ElementType t) {
  switch (t) {
    case ElementType::kFloat16:
    case ElementType::kBfloat16:
      return 2;
    case ElementType::kFloat32:
    case ElementType::kInt32:
      return 4;
    case ElementType::kFloat64:
    case ElementType::kInt64:
      return 8;
  }
  return 8;
}

/// Bytes of one element while it is being summed: half precision is summed as fp32, rounded once.
constexpr std::size_t accumulator_bytes(ElementType t) {
  return element_bytes(t) < 4 ? 4 : element_bytes(t);
}

constexpr bool is_floating(ElementType t) {
  return t != ElementType::kInt32 && t != ElementType::kInt64;
}

constexpr std::string_view element_type_name(ElementType t) {
  switch (t) {
    case ElementType::kFloat32:
      return "fp32";
    case ElementType::kFloat64:
      return "fp64";
    case ElementType::kFloat16:
      return "fp16";
    case ElementType::kBfloat16:
      return "bf16";
    case ElementType::kInt32:
      return "int32";
    case ElementType::kInt64:
      return "int64";
  }
  return "?";
}

inline constexpr std::size_t kMinElementBytes = 2;

}  // namespace gradplane
