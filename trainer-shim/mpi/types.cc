// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/mpi/types.h"

#include <stdexcept>

namespace gradplane::shim {

static_assert(sizeof(int) == element_bytes(ElementType::kInt32));
static_assert(sizeof(long) == element_bytes(ElementType::kInt64));
static_assert(sizeof(long long) == element_bytes(ElementType::kInt64));

std::optional<ElementType> element_type_of(MPI_Datatype type) {
  if (type == MPI_FLOAT) return ElementType::kFloat32;
  if (type == MPI_DOUBLE) return ElementType::kFloat64;
  if (type == MPI_INT || type == MPI_INT32_T) return ElementType::kInt32;
  if (type == MPI_LONG || type == MPI_LONG_LONG || type == MPI_INT64_T) return ElementType::kInt64;
  return std::nullopt;
}

MPI_Datatype datatype_of(ElementType type) {
  if (type == ElementType::kFloat32) return MPI_FLOAT;
  if (type == ElementType::kFloat64) return MPI_DOUBLE;
  if (type == ElementType::kInt32) return MPI_INT32_T;
  if (type == ElementType::kInt64) return MPI_INT64_T;
  throw std::logic_error("gradplane: MPI has no datatype for what is summed");
}

std::optional<Reduction> reduction_of(MPI_Op op) {
  if (op == MPI_SUM) return Reduction::kSum;
  if (op == MPI_MAX) return Reduction::kMax;
  if (op == MPI_MIN) return Reduction::kMin;
  if (op == MPI_PROD) return Reduction::kProduct;
  return std::nullopt;
}

MPI_Op op_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::kMax:
      return MPI_MAX;
    case Reduction::kMin:
      return MPI_MIN;
    case Reduction::kProduct:
      return MPI_PROD;
    case Reduction::kSum:
      break;
  }
  return MPI_SUM;
}

}  // namespace gradplane::shim
