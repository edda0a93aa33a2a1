// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <optional>

#include "dataplane/model/element_type.h"
#include "dataplane/model/reduction.h"
#include "trainer-shim/mpi/mpi_api.h"

namespace gradplane::shim {

/// The element type of the dataplane for a datatype; nothing if the dataplane does not sum it.
std::optional<ElementType> element_type_of(MPI_Datatype type);
MPI_Datatype datatype_of(ElementType type);

/// The reduction of the dataplane for a predefined operation; nothing if it has none.
std::optional<Reduction> reduction_of(MPI_Op op);
MPI_Op op_of(Reduction reduction);

}  // namespace gradplane::shim
