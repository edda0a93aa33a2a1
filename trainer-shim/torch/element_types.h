// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>

#include "dataplane/model/element_type.h"

namespace gradplane::shim {

constexpr at::ScalarType scalar_type_of(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return at::kFloat;
    case ElementType::kFloat64:
      return at::kDouble;
    case ElementType::kFloat16:
      return at::kHalf;
    case ElementType::kBfloat16:
      return at::kBFloat16;
    case ElementType::kInt32:
      return at::kInt;
    case ElementType::kInt64:
      return at::kLong;
  }
  return at::ScalarType::Undefined;
}

constexpr std::optional<ElementType> element_type_of(at::ScalarType type) {
  for (const ElementType candidate : kElementTypes) {
    if (scalar_type_of(candidate) == type) return candidate;
  }
  return std::nullopt;
}

}  // namespace gradplane::shim
