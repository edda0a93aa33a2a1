// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "dataplane/model/element_type.h"

namespace gradplane {

/// The type in which a block carries its elements. All but kElements are only for fp32. The numbers
/// are on the wire: never change one.
enum class WireType : std::uint8_t {
  kElements = 0,  // as they are in the trainer's buffer
  kBfloat16 = 1,
  kFloat16 = 2,
  kInt8 = 3,  // an fp32 scale, followed by one signed byte for each element
};
inline constexpr std::array kWireTypes = {WireType::kElements, WireType::kBfloat16,
                                          WireType::kFloat16, WireType::kInt8};

constexpr bool is_wire_type(std::uint8_t raw) {
  return raw < kWireTypes.size();
}

/// Bytes before the elements of an int8 block.
inline constexpr std::size_t kScaleBytes = 4;

/// The bytes of a block with this many elements.
constexpr std::size_t wire_bytes(WireType wire, ElementType type, std::size_t elements) {
  switch (wire) {
    case WireType::kElements:
      break;
    case WireType::kBfloat16:
    case WireType::kFloat16:
      return 2 * elements;
    case WireType::kInt8:
      return kScaleBytes + elements;
  }
  return element_bytes(type) * elements;
}

/// The one of two wire types whose blocks are shorter; the first if they are as long.
constexpr WireType narrower(WireType a, WireType b) {
  return a == WireType::kElements || b == WireType::kInt8 ? b : a;
}

/// The wire type of a block with elements of two tensors with these wire types. The error of bf16
/// is never larger than that of int8. Neither of bf16 and fp16 can represent all values of the
/// other, and below 2^-24 int8 may be more precise than fp16.
constexpr WireType shared_wire_type(WireType a, WireType b) {
  if (a == b) return a;
  const bool are_bfloat16_and_int8 = (a == WireType::kBfloat16 && b == WireType::kInt8) ||
                                     (a == WireType::kInt8 && b == WireType::kBfloat16);
  return are_bfloat16_and_int8 ? WireType::kBfloat16 : WireType::kElements;
}

/// The names that operators use. Only fp32 is ever sent in another type, so "fp32" stands for
/// kElements.
inline constexpr std::array<std::string_view, 4> kWireTypeNames = {"fp32", "bf16", "fp16", "int8"};
static_assert(kWireTypeNames.size() == kWireTypes.size());

constexpr std::string_view wire_type_name(WireType wire) {
  return kWireTypeNames[static_cast<std::size_t>(wire)];
}

}  // namespace gradplane
