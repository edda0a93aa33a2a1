// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "dataplane/model/element_type.h"
#include "dataplane/model/reduction.h"
#include "trainer-shim/torch/version.h"

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

constexpr c10d::ReduceOp::RedOpType reduce_op_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return c10d::ReduceOp::SUM;
    case Reduction::kMax:
      return c10d::ReduceOp::MAX;
    case Reduction::kMin:
      return c10d::ReduceOp::MIN;
    case Reduction::kProduct:
      return c10d::ReduceOp::PRODUCT;
  }
  return c10d::ReduceOp::UNUSED;
}

constexpr std::optional<Reduction> reduction_of(c10d::ReduceOp::RedOpType op) {
  for (const Reduction candidate : kReductions) {
    if (reduce_op_of(candidate) == op) return candidate;
  }
  return std::nullopt;
}

/// Whether Gloo copies tensors of a type. gradplane must refuse other types, too, so that a program
/// finds no difference after a fallback.
constexpr bool is_copied(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
    case at::kDouble:
    case at::kHalf:
    case at::kChar:
    case at::kByte:
    case at::kInt:
    case at::kLong:
      return true;
    case at::kBFloat16:
    case at::kBool:
      return GP_TORCH_AT_LEAST(2, 6);
    default:
      return false;
  }
}
/// The element type with which bytes travel that are only copied.
inline constexpr ElementType kCopiedAs = ElementType::kInt32;

}  // namespace gradplane::shim
